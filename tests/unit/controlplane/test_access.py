"""Tokens, client certificates, roles, reviews."""

from __future__ import annotations

import ssl
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from plane import MERGE, PODS, Client, node, pod, running
from skedge.controlplane.access import Access, User
from skedge.controlplane.server import ControlPlane
from skedge.controlplane.tls import Authority

pytestmark = pytest.mark.asyncio

TOKENS = {"root": User("root", ("system:masters",)), "jane": User("jane", ("readers",), "u-1")}
RBAC = "/apis/rbac.authorization.k8s.io/v1"


async def _as(c: Client, token: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return await c.send(method, path, body, **headers)


def _role(name: str, *rules: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "rules": list(rules)}


def _binding(role: str, kind: str, subject: str, role_kind: str = "Role") -> dict[str, Any]:
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role}
    return {"metadata": {"name": f"{role}-{subject}"}, "roleRef": ref, "subjects": [{"kind": kind, "name": subject}]}


async def test_roles_take_effect_when_they_change() -> None:
    async with running(access=Access(TOKENS)) as c:
        assert (await _as(c, "root", "POST", PODS, pod("a")))[0] == 201
        code, answer = await _as(c, "jane", "GET", f"{PODS}/a")
        wanted = (
            'pods "a" is forbidden: User "jane" cannot get resource "pods" in API group "" in the namespace "default"'
        )
        assert (code, answer["message"]) == (403, wanted)
        assert (await _as(c, "nobody", "GET", PODS))[0] == 401
        rule = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}
        roles, bindings = f"{RBAC}/namespaces/default/roles", f"{RBAC}/namespaces/default/rolebindings"
        await _as(c, "root", "POST", roles, _role("reader", rule))
        await _as(c, "root", "POST", bindings, _binding("reader", "Group", "readers"))
        assert (await _as(c, "jane", "GET", f"{PODS}/a"))[0] == 200
        assert (await _as(c, "jane", "GET", "/api/v1/pods"))[0] == 403
        assert (await _as(c, "jane", "DELETE", f"{PODS}/a"))[0] == 403
        await _as(c, "root", "DELETE", f"{bindings}/reader-readers")
        assert (await _as(c, "jane", "GET", f"{PODS}/a"))[0] == 403


@pytest.mark.parametrize(
    ("selector", "code"),
    [
        ("metadata.name=mine", 200),
        ("metadata.name==mine", 200),
        ("metadata.name=other", 403),
        ("metadata.name!=mine", 403),
        ("metadata.namespace=mine", 403),
    ],
)
async def test_a_field_selector_names_the_object(selector: str, code: int) -> None:
    async with running(access=Access(TOKENS)) as c:
        rule = {"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"]}
        base = f"{RBAC}/namespaces/default"
        await _as(c, "root", "POST", f"{base}/roles", _role("one", rule))
        await _as(c, "root", "POST", f"{base}/rolebindings", _binding("one", "User", "jane"))
        path = "/api/v1/namespaces/default/configmaps"
        assert (await _as(c, "jane", "GET", f"{path}?fieldSelector={selector.replace('=', '%3D')}"))[0] == code
        assert (await _as(c, "jane", "GET", path))[0] == 403


async def test_cluster_roles_resource_names_and_subresources() -> None:
    async with running(access=Access(TOKENS)) as c:
        only = {"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"], "resourceNames": ["n1"]}
        scale = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*/scale"]}
        paths = {"verbs": ["get"], "nonResourceURLs": ["/metrics/*"]}
        await _as(c, "root", "POST", f"{RBAC}/clusterroles", _role("some", only, scale, paths))
        await _as(c, "root", "POST", f"{RBAC}/clusterrolebindings", _binding("some", "User", "jane", "ClusterRole"))
        for name in ("n1", "n2"):
            await _as(c, "root", "POST", "/api/v1/nodes", node(name))
        assert [(await _as(c, "jane", "GET", f"/api/v1/nodes/{n}"))[0] for n in ("n1", "n2")] == [200, 403]
        code, _ = await _as(c, "jane", "GET", "/apis/apps/v1/namespaces/default/deployments/x/scale")
        assert code == 404
        access = c.plane.access
        jane = User("jane")
        assert access.decide_path(jane, "get", "/metrics/x")[0]
        assert not access.decide_path(jane, "get", "/other")[0]
        reason = access.decide(jane, "get", "", "nodes", "", "n1")[1]
        assert reason == 'RBAC: allowed by ClusterRoleBinding "some-jane" of ClusterRole "some" to User "jane"'


async def test_reviews() -> None:
    async with running(access=Access(TOKENS)) as c:
        reviews = "/apis/authentication.k8s.io/v1/tokenreviews"
        for token, known in (("jane", True), ("nobody", False)):
            _, answer = await _as(c, "root", "POST", reviews, {"spec": {"token": token}})
            assert answer["status"].get("authenticated", False) is known
        code, _ = await _as(c, "root", "POST", reviews, {"spec": {}})
        assert code == 422
        sar = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        attributes = {"verb": "create", "resource": "pods", "subresource": "binding", "namespace": "default"}
        for user, allowed in (("system:kube-scheduler", True), ("jane", False)):
            _, answer = await _as(c, "root", "POST", sar, {"spec": {"user": user, "resourceAttributes": attributes}})
            assert answer["status"]["allowed"] is allowed
        own = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        _, answer = await _as(c, "jane", "POST", own, {"spec": {"resourceAttributes": attributes}})
        assert answer["status"] == {"allowed": False}
        who = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        _, answer = await _as(c, "jane", "POST", who, {})
        groups = ["readers", "system:authenticated"]
        assert answer["status"]["userInfo"] == {"username": "jane", "uid": "u-1", "groups": groups}
        rules = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
        _, answer = await _as(c, "jane", "POST", rules, {"spec": {"namespace": "default"}})
        assert any("/version" in rule["nonResourceURLs"] for rule in answer["status"]["nonResourceRules"])


async def test_without_enforcement_everybody_may_do_everything() -> None:
    async with running() as c:
        assert (await _as(c, "whatever", "POST", PODS, pod("a")))[0] == 201
        assert (await _as(c, "", "DELETE", f"{PODS}/a"))[0] == 200


async def test_client_certificates(tmp_path: Path) -> None:
    authority = Authority(tmp_path, time.time())
    plane = ControlPlane(tls=authority.serving(["127.0.0.1", "localhost"]), access=Access(TOKENS))
    await plane.start()
    try:
        assert plane.url.startswith("https://")
        for name, groups, code in (("admin", ["system:masters"], 200), ("jane", ["readers"], 403)):
            context = ssl.create_default_context(cafile=authority.ca_cert)
            context.load_cert_chain(*authority.client(name, groups))
            connector = aiohttp.TCPConnector(ssl=context)
            async with (
                aiohttp.ClientSession(plane.url, connector=connector) as session,
                session.get("/api/v1/nodes") as answer,
            ):
                assert answer.status == code
        context = ssl.create_default_context(cafile=authority.ca_cert)
        async with (
            aiohttp.ClientSession(plane.url, connector=aiohttp.TCPConnector(ssl=context)) as session,
            session.get("/api/v1/nodes") as answer,
        ):
            assert (await answer.json())["message"].startswith('nodes is forbidden: User "system:anonymous"')
    finally:
        await plane.stop()
    again = Authority(tmp_path, time.time())
    assert again.ca_cert.read_bytes() == authority.ca_cert.read_bytes()
    assert (tmp_path / "ca.key").stat().st_mode & 0o777 == 0o600


async def test_who_may_act_as_somebody_else() -> None:
    async with running(access=Access(TOKENS)) as c:
        await _as(c, "root", "POST", PODS, pod("a"))

        async def who(token: str, **headers: str) -> tuple[int, Any]:
            path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
            code, answer = await c.send("POST", path, {}, Authorization=f"Bearer {token}", **headers)
            return code, answer["status"]["userInfo"] if code == 201 else answer["message"]

        jane = {"Impersonate-User": "jane", "Impersonate-Uid": "7", "Impersonate-Extra-Acme%2FTeam": "x"}
        groups = ["system:authenticated"]
        wanted = {"username": "jane", "uid": "7", "groups": groups, "extra": {"acme/team": ["x"]}}
        assert await who("root", **jane) == (201, wanted)
        account = {"Impersonate-User": "system:serviceaccount:ns:robot"}
        groups = ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]
        assert (await who("root", **account))[1]["groups"] == groups
        nobody = {"Impersonate-User": "system:anonymous"}
        assert (await who("root", **{**nobody, "Impersonate-Group": "system:unauthenticated"}))[0] == 403
        assert (await who("root", **{"Impersonate-Group": "g"}))[0] == 500
        code, answer = await c.send("DELETE", f"{PODS}/a", Authorization="Bearer root", **{"Impersonate-User": "jane"})
        assert (code, answer["message"].startswith('pods "a" is forbidden: User "jane" cannot delete')) == (403, True)
        why = 'cannot impersonate resource "users" in API group "" at the cluster scope'
        assert await who("jane", **{"Impersonate-User": "bob"}) == (
            403,
            f'users "bob" is forbidden: User "jane" {why}',
        )
        rule = {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"]}
        await _as(c, "root", "POST", f"{RBAC}/clusterroles", _role("mask", rule))
        await _as(c, "root", "POST", f"{RBAC}/clusterrolebindings", _binding("mask", "User", "jane", "ClusterRole"))
        assert (await who("jane", **{"Impersonate-User": "bob"}))[0] == 201
        assert (await who("jane", **{"Impersonate-User": "bob", "Impersonate-Group": "system:masters"}))[0] == 403


@pytest.mark.parametrize(
    ("role", "verb", "resource", "allowed"),
    [
        ("view", "list", "pods", True),
        ("view", "get", "secrets", False),
        ("view", "create", "pods", False),
        ("edit", "create", "pods/eviction", True),
        ("edit", "get", "secrets", True),
        ("edit", "create", "resourcequotas", False),
        ("admin", "delete", "configmaps", True),
    ],
)
async def test_roles_for_people(role: str, verb: str, resource: str, allowed: bool) -> None:
    async with running(access=Access(TOKENS)) as c:
        path = f"{RBAC}/namespaces/default/rolebindings"
        await _as(c, "root", "POST", path, _binding(role, "User", "jane", "ClusterRole"))
        assert c.plane.access.decide(User("jane"), verb, "", resource, "default", "")[0] is allowed
        assert not c.plane.access.decide(User("jane"), verb, "", resource, "other", "")[0]


async def test_nobody_gives_more_rights_than_they_have() -> None:
    async with running(access=Access(TOKENS)) as c:
        base = f"{RBAC}/namespaces/default"
        own = {"verbs": ["create", "patch"], "apiGroups": ["rbac.authorization.k8s.io"]}
        own["resources"] = ["roles", "rolebindings"]
        pods = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
        await _as(c, "root", "POST", f"{base}/roles", _role("delegate", own, pods))
        await _as(c, "root", "POST", f"{base}/rolebindings", _binding("delegate", "User", "jane"))
        assert (await _as(c, "jane", "POST", f"{base}/roles", _role("same", pods)))[0] == 201
        more = {**pods, "verbs": ["get", "list", "watch"]}
        code, answer = await _as(c, "jane", "POST", f"{base}/roles", _role("more", more))
        words = 'roles.rbac.authorization.k8s.io "more" is forbidden: user "jane" '
        words += '(groups=["readers" "system:authenticated"]) is attempting to grant RBAC permissions not currently '
        words += 'held:\n{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}'
        assert (code, answer["message"]) == (403, words)
        patch = {"Authorization": "Bearer jane"}
        code, _ = await c.send("PATCH", f"{base}/roles/same", {"rules": [more]}, MERGE, **patch)
        assert code == 403
        assert (await _as(c, "root", "GET", f"{base}/roles/same"))[1]["rules"] == [pods]
        view = _binding("view", "User", "bob", "ClusterRole")
        assert (await _as(c, "jane", "POST", f"{base}/rolebindings", view))[0] == 403
        assert (await _as(c, "jane", "POST", f"{base}/rolebindings", _binding("none", "User", "bob")))[0] == 404
        assert (await _as(c, "jane", "POST", f"{base}/rolebindings", _binding("same", "User", "bob")))[0] == 201
        bind = {"verbs": ["bind"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"]}
        await _as(c, "root", "POST", f"{base}/roles", _role("binder", bind))
        await _as(c, "root", "POST", f"{base}/rolebindings", _binding("binder", "User", "jane"))
        assert (await _as(c, "jane", "POST", f"{base}/rolebindings", view))[0] == 201
