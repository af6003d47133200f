import pytest

from skedge.config.durations import Duration
from skedge.config.fields import ConfigError
from skedge.config.legacy import decode_policy
from skedge.config.legacy.policy import PredicatePolicy
from skedge.config.types import Extender, ExtenderTLS, ManagedResource

HEAD = "kind: Policy\napiVersion: v1\n"


def error(body, head=HEAD):
    with pytest.raises(ConfigError) as caught:
        decode_policy(head + body)
    return str(caught.value)


@pytest.mark.parametrize("version", ["v1", "kubescheduler.config.k8s.io/v1"])
def test_both_versions(version):
    policy = decode_policy(f"kind: Policy\napiVersion: {version}\npredicates: [{{name: HostName}}]\npriorities: []")
    assert policy.predicates == [PredicatePolicy("HostName")]
    assert policy.priorities == []
    assert decode_policy(f'{{"kind":"Policy","apiVersion":"{version}"}}').predicates is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "invalid policy: Object 'Kind' is missing in 'null'"),
        ("kind: Policy", "invalid policy: Object 'apiVersion' is missing in 'kind: Policy'"),
        ("kind: Pod\napiVersion: v1", 'invalid policy: no kind "Pod" is registered for version "v1"'),
        ("kind: Policy\napiVersion: v2", 'invalid policy: no kind "Policy" is registered for version "v2"'),
        (HEAD + "predicate: []", 'invalid policy: strict decoding error: unknown field "predicate"'),
        (HEAD + "extenders: 3", "invalid policy: extenders: expected a list"),
        (HEAD + "extenders: [3]", "invalid policy: extenders[0]: expected an object"),
        (HEAD + "extenders: [{weight: x}]", "invalid policy: extenders[0]: json: cannot unmarshal string"),
        ("{", "invalid policy: couldn't get version/kind; json parse error"),
    ],
)
def test_undecodable(text, message):
    assert error(text, "").startswith(message)


def priority(name="X", weight=1, argument=""):
    return f"{{name: {name}, weight: {weight}{', argument: ' + argument if argument else ''}}}"


RATIO = "{requestedToCapacityRatioArguments: {shape: [{utilization: 0, score: 0}]}}"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            f"priorities: [{priority('EqualPriority', 0)}]",
            "priority EqualPriority should have a positive weight applied to it or it has overflown",
        ),
        (
            f"priorities: [{priority('EqualPriority', ((1 << 63) - 1) // 10)}]",
            "priority EqualPriority should have a positive weight applied to it or it has overflown",
        ),
        (
            f"priorities: [{priority('EqualPriority', 1 << 31)}]",
            "priority EqualPriority should have a weight of at most 2147483647",
        ),
        (
            f"priorities: [{priority('a', 1, RATIO)}, {priority('b', 1, RATIO)}]",
            'priority "b" redeclares custom priority "RequestedToCapacityRatio", from: "a"',
        ),
        (
            f"priorities: [{priority('a', 1, '{labelPreference: {label: x}}')}, "
            f"{priority('b', 2, '{labelPreference: {label: w}}')}]",
            'LabelPreference  priority "b" has a different weight with "a"',
        ),
        (
            f"priorities: [{priority('a', 1, '{serviceAntiAffinity: {label: x}}')}, "
            f"{priority('b', 2, '{serviceAntiAffinity: {label: w}}')}]",
            'ServiceAntiAffinity  priority "b" has a different weight with "a"',
        ),
        (f"priorities: [{priority('a', 1, '{}')}]", "no priority arguments set for priority a"),
        (
            f"priorities: [{priority('a', 1, '{labelPreference: {label: x}, serviceAntiAffinity: {label: x}}')}]",
            "Exactly 1 priority argument is required, numArgs: 2, Priority: a",
        ),
        (
            "predicates: [{name: a, argument: {}}]",
            "Exactly 1 predicate argument is required, numArgs: 0, Predicate: a",
        ),
        (
            "predicates: [{name: a, argument: {labelsPresence: {labels: [x, w], presence: true}}}, "
            "{name: b, argument: {labelsPresence: {labels: [z, w], presence: false}}}]",
            'detecting at least one label (e.g., "w") that exist in both the present([x w]) and absent([z w]) '
            "label list",
        ),
        (
            "extenders: [{prioritizeVerb: p, weight: 0}]",
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
        ),
        (
            "extenders: [{bindVerb: a}, {BindVerb: b}]",
            'extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind',
        ),
        (
            "extenders: [{managedResources: [{name: kubernetes.io/foo}]}]",
            'extenders[0].managedResources[0].name: Invalid value: "kubernetes.io/foo": '
            "kubernetes.io/foo is an invalid extended resource name",
        ),
        (
            "extenders: [{managedResources: [{name: a.io/b}]}, {managedResources: [{name: a.io/b}]}]",
            'extenders[1].managedResources[0].name: Invalid value: "a.io/b": duplicate extender managed resource name',
        ),
        (
            "hardPodAffinitySymmetricWeight: 101",
            "hardPodAffinitySymmetricWeight: Invalid value: 101: not in valid range [0-100]",
        ),
        (
            f"hardPodAffinitySymmetricWeight: -1\npriorities: [{priority('EqualPriority', 0)}]",
            "[priority EqualPriority should have a positive weight applied to it or it has overflown, "
            "hardPodAffinitySymmetricWeight: Invalid value: -1: not in valid range [0-100]]",
        ),
    ],
)
def test_rules(body, message):
    assert error(body) == f"couldn't create scheduler from policy: {message}"


def test_extenders_in_any_case():
    (extender,) = decode_policy(
        HEAD
        + """extenders:
- urlPrefix: /prefix
  FilterVerb: filter
  prioritizeVerb: prioritize
  weight: 1
  BindVerb: bind
  enableHttps: true
  tlsConfig: {Insecure: true}
  httpTimeout: 100000000
  nodeCacheCapable: true
  managedResources: [{Name: example.com/foo, ignoredByScheduler: true}]
  ignorable: true
  someOldField: 1
"""
    ).extenders
    assert extender == Extender(
        "/prefix", "filter", "", "prioritize", 1, "bind", True, ExtenderTLS(insecure=True), Duration.parse("100ms"),
        True, [ManagedResource("example.com/foo", True)], True,
    )  # fmt: skip
