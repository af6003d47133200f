"""One pod from queue to node: event handlers, scheduling cycle, binding cycle, failure handler.

The cycle is a plain function; only the binding side awaits. Talks to the outside through ports.
"""
