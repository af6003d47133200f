import gzip
from pathlib import Path

import pytest

from skedge.config.fields import ConfigError
from skedge.config.gates import GATES, FeatureGates

DATA = Path(__file__).parents[2] / "data" / "config"


def test_recorded_names_stages_and_defaults():
    recorded = gzip.decompress((DATA / "gates.txt.gz").read_bytes()).decode().splitlines()
    ours = [
        f'kubernetes_feature_enabled{{name="{name}",stage="{stage}"}} {int(on)}'
        for name, stage, on in FeatureGates().items()
    ]
    assert ours == recorded


ON = """DynamicResourceAllocation SchedulerQueueingHints NodeDeclaredFeatures SchedulerAsyncPreemption
SchedulerPopFromBackoffQ OpportunisticBatching NominatedNodeNameForExpectation ClearingNominatedNodeNameAfterBinding
MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge PodLevelResources
InPlacePodVerticalScaling DRASchedulerFilterTimeout DRADeviceBindingConditions DRAResourceClaimDeviceStatus
DRAExtendedResource DRADeviceTaints DRAConsumableCapacity DRAPartitionableDevices DRAPrioritizedList DRAAdminAccess
ComponentFlagz ComponentStatusz ContextualLogging LoggingBetaOptions UnauthenticatedHTTP2DOSMitigation
RemoteRequestHeaderUID WatchListClient InPlacePodLevelResourcesVerticalScaling SidecarContainers
PodSchedulingReadiness PodObservedGenerationTracking NodeInclusionPolicyInPodTopologySpread MatchLabelKeysInPodAffinity
VolumeAttributesClass MutableCSINodeAllocatableCount"""
OFF = """SchedulerAsyncAPICalls CoordinatedLeaderElection DRADeviceTaintRules GenericWorkload GangScheduling
TopologyAwareWorkloadScheduling WorkloadAwarePreemption StorageCapacityScoring VolumeLimitScaling
TaintTolerationComparisonOperators DRANodeAllocatableResources LoggingAlphaOptions NativeHistograms
CBORServingAndStorage WorkloadWithJob DRAListTypeAttributes DRAWorkloadResourceClaims"""


@pytest.mark.parametrize(("text", "on"), [(ON, True), (OFF, False)])
def test_defaults(text, on):
    gates = FeatureGates()
    assert [name for name in text.split() if gates.enabled(name) is not on] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("X", "missing bool value for X"),
        ("X=true", "unrecognized feature gate: X"),
        (
            "GangScheduling=v",
            'invalid value of GangScheduling=v, err: strconv.ParseBool: parsing "v": invalid syntax',
        ),
        (
            "SchedulerQueueingHints=false",
            "cannot set feature gate SchedulerQueueingHints to false, feature is locked to true",
        ),
        (
            "GangScheduling=true",
            "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
        (
            "DRAResourceClaimDeviceStatus=false",
            "DRADeviceBindingConditions is enabled, but depends on features that are disabled: "
            "[DRAResourceClaimDeviceStatus]",
        ),
        (
            "WorkloadAwarePreemption=true,GenericWorkload=true",
            "WorkloadAwarePreemption is enabled, but depends on features that are disabled: [GangScheduling]",
        ),
        ("foo:GangScheduling=true", "component not registered: foo"),
        (
            "kube:GenericWorkload=true,GangScheduling=true",
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use",
        ),
        ("Nope=true,Neither=true", "[unrecognized feature gate: Nope, unrecognized feature gate: Neither]"),
    ],
)
def test_errors(text, message):
    gates = FeatureGates()
    with pytest.raises(ConfigError) as caught:
        gates.set_from_string(text)
    assert str(caught.value) == message
    assert gates == FeatureGates()


def test_notes():
    gates = FeatureGates()
    assert gates.set_from_string("SchedulerQueueingHints=true,KMSv1=true,OpportunisticBatching=false") == [
        "Setting GA feature gate SchedulerQueueingHints=true. It will be removed in a future release.",
        "Setting deprecated feature gate KMSv1=true. It will be removed in a future release.",
        "Feature gate OpportunisticBatching=false has no effect here",
    ]
    assert not gates.enabled("OpportunisticBatching")


def test_gates_that_change_nothing_say_so():
    told = [f"Feature gate {name} has no effect here" for name in ("NativeHistograms=true", "PodLevelResources=false")]
    assert FeatureGates().set_from_string("NativeHistograms=true,PodLevelResources=false") == told
    assert "Feature gate PodLevelResources=false has no effect here" in FeatureGates().set_from_string("AllBeta=false")
    assert FeatureGates().set_from_string("NativeHistograms=false,PodLevelResources=true") == []


def test_whole_classes_and_explicit_entries():
    gates = FeatureGates()
    gates.set_from_string("AllAlpha=true, TopologyAwareWorkloadScheduling=false", "kube:AllBeta=false"[5:])
    assert gates.enabled("GangScheduling")
    assert not gates.enabled("TopologyAwareWorkloadScheduling")
    assert not gates.enabled("NodeDeclaredFeatures")
    assert gates.enabled("DynamicResourceAllocation")


def test_later_entries_win():
    gates = FeatureGates()
    gates.set_from_string("GenericWorkload=true", "GenericWorkload=false")
    assert not gates.enabled("GenericWorkload")


def test_the_table_is_sorted():
    assert list(GATES) == sorted(GATES)
