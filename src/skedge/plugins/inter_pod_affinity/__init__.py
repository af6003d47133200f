"""InterPodAffinity: pods near other pods, or far from them."""
