"""A scheduler plugin: keeps pods off nodes that are too hot, and prefers the coolest.

    skedge up --plugin examples/plugin.py:Cool
    kubectl label node node-0 example.com/celsius=95

A pod with the label `example.com/bears: heat` may go to a hot node all the same.
"""

from skedge.framework.status import SUCCESS, Code, Status


class Cool:
    name = "Cool"

    def filter_node(self, state, pod, node):
        if celsius(node) > 80 and pod.labels.get("example.com/bears") != "heat":
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "node(s) were too hot")
        return SUCCESS

    def score_node(self, state, pod, node):
        return max(0, 100 - celsius(node))


def celsius(node):
    return int(node.labels.get("example.com/celsius", "20"))
