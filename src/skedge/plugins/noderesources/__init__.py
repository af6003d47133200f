"""Resource plugins: NodeResourcesFit and NodeResourcesBalancedAllocation, and how they score."""
