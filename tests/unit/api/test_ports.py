"""Host ports and their collisions."""

from __future__ import annotations

import pytest

from skedge.api.core import Container, ContainerPort, Pod, PodSpec
from skedge.api.ports import HostPort, any_collide, host_ports


def port(text: str) -> HostPort:
    protocol, ip, number = text.split("/")
    return HostPort(ip, protocol, int(number))


@pytest.mark.parametrize(
    ("used", "wanted", "expected"),
    [
        (["UDP/127.0.0.1/8080"], ["UDP/127.0.0.1/8080"], True),
        (["TCP/127.0.0.2/8080"], ["TCP/127.0.0.1/8080"], False),
        (["TCP/127.0.0.1/8080"], ["UDP/127.0.0.1/8080"], False),
        (["TCP/127.0.0.1/8001"], ["TCP/0.0.0.0/8001"], True),
        (["TCP/0.0.0.0/8001"], ["TCP/127.0.0.1/8001"], True),
        (["TCP/0.0.0.0/8001"], ["UDP/127.0.0.1/8001"], False),
        (["TCP/127.0.0.1/8001"], ["TCP/10.0.10.10/8001", "TCP/0.0.0.0/8001"], True),
        (["TCP/::/8001"], ["TCP/127.0.0.1/8001"], False),
        (["TCP/::/8001"], ["TCP/::/8001"], True),
        ([], ["TCP/0.0.0.0/8001"], False),
    ],
)
def test_collisions(used: list[str], wanted: list[str], expected: bool) -> None:
    assert any_collide(map(port, wanted), map(port, used)) is expected


def test_ports_of_a_pod() -> None:
    main = Container(
        "main",
        ports=(
            ContainerPort(80, 8080),
            ContainerPort(81),
            ContainerPort(80, 8080, "0.0.0.0", "TCP"),
            ContainerPort(53, 53, "10.0.0.1", "UDP"),
        ),
    )
    sidecar = Container("s", ports=(ContainerPort(1, 9001),), restart_policy="Always")
    init = Container("i", ports=(ContainerPort(1, 9002),))
    pod = Pod(spec=PodSpec(containers=(main,), init_containers=(sidecar, init)))
    assert host_ports(pod) == (port("TCP/0.0.0.0/8080"), port("UDP/10.0.0.1/53"), port("TCP/0.0.0.0/9001"))
    assert host_ports(Pod(spec=PodSpec(containers=None, init_containers=None))) == ()
