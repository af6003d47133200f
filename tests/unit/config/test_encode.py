import gzip
from pathlib import Path

import msgspec
import yaml

from skedge.config import defaults, encode, load
from skedge.config.durations import Duration
from skedge.config.plugin_args import PLUGIN_ARGS
from skedge.config.types import Extender, ExtenderTLS, ManagedResource

DATA = Path(__file__).parents[2] / "data" / "config"


def test_recorded_configz():
    """Byte for byte, with what the recorded process was given."""
    recorded = gzip.decompress((DATA / "configz.json.gz").read_bytes()).strip()
    config = defaults.default_configuration()
    connection = config.client_connection
    connection.kubeconfig, connection.qps, connection.burst = "kc", 1000, 1000
    connection.accept_content_types = connection.content_type = "application/json"
    config.percentage_of_nodes_to_score = 0
    assert b'{"componentconfig":' + encode.to_json(config) + b"}" == recorded


def test_yaml_of_the_defaults():
    text = encode.to_yaml(defaults.default_configuration())
    data = yaml.safe_load(text)
    assert list(data) == sorted(data)
    assert data["percentageOfNodesToScore"] == 100  # an absent field stands for all nodes
    assert len(data["profiles"][0]["plugins"]) == 15
    assert data["profiles"][0]["plugins"]["bind"] == {}
    assert data["profiles"][0]["plugins"]["multiPoint"]["enabled"][0] == {"name": "SchedulingGates", "weight": 0}
    assert [entry["name"] for entry in data["profiles"][0]["pluginConfig"]] == sorted(PLUGIN_ARGS)
    assert "delayCacheUntilActive" not in data
    assert "extenders" not in data


def test_extenders_read_back():
    config = defaults.default_configuration()
    config.delay_cache_until_active = True
    tls = ExtenderTLS(insecure=True, ca_data=b"\x00ca")
    resources = [ManagedResource("x.io/y", True)]
    config.extenders = [
        Extender("http://a", "f", "p", "s", 3, "b", True, tls, Duration.of(1), True, resources, True),
        Extender("http://b"),
    ]
    assert encode.to_data(config)["extenders"][1] == {"urlPrefix": "http://b", "httpTimeout": "0s"}
    assert encode.to_data(config)["extenders"][0]["enableHTTPS"] is True
    for text in (encode.to_yaml(config), encode.to_json(config)):
        assert load.decode(text, args_types=PLUGIN_ARGS) == config


def test_out_of_tree_arguments_are_kept():
    text = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {qps: 0.5}
profiles:
- pluginConfig:
  - name: Coscheduling
    args: {permitWaitingTimeSeconds: 10, nested: {a: [1, x]}}
"""
    config = load.decode(text, args_types=PLUGIN_ARGS)
    assert config.profiles[0].args_of("Coscheduling") == {"permitWaitingTimeSeconds": 10, "nested": {"a": [1, "x"]}}
    again = load.decode(encode.to_yaml(config), args_types=PLUGIN_ARGS)
    assert again == config
    assert msgspec.json.decode(encode.to_json(config))["clientConnection"]["qps"] == 0.5
