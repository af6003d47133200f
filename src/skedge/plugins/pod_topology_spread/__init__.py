"""PodTopologySpread: pods of a kind spread evenly over zones, nodes, or other domains."""
