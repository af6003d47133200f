"""The server over HTTP: writes, deletion, admission, subresources, lists."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any

import pytest

from plane import APPLY, MERGE, PODS, STRATEGIC, Client, node, pod, running

pytestmark = pytest.mark.asyncio

NODES = "/api/v1/nodes"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


async def test_unbound_pods_go_at_once_bound_ones_with_grace() -> None:
    async with running() as c:
        await c.ok("POST", PODS, pod("a"))
        gone = await c.ok("DELETE", f"{PODS}/a")
        assert gone["metadata"]["deletionGracePeriodSeconds"] == 0
        assert (await c.send("GET", f"{PODS}/a"))[0] == 404

        await c.ok("POST", PODS, pod("b"))
        assert (await c.bind("b", "n1"))[0] == 201
        dying = await c.ok("DELETE", f"{PODS}/b")
        assert dying["metadata"]["deletionGracePeriodSeconds"] == 30
        longer = await c.ok("DELETE", f"{PODS}/b", {"gracePeriodSeconds": 60})
        assert longer["metadata"]["resourceVersion"] == dying["metadata"]["resourceVersion"]
        shorter = await c.ok("DELETE", f"{PODS}/b", {"gracePeriodSeconds": 5})
        assert shorter["metadata"]["deletionGracePeriodSeconds"] == 5
        await c.ok("DELETE", f"{PODS}/b?gracePeriodSeconds=0")
        assert (await c.send("GET", f"{PODS}/b"))[0] == 404


async def test_finalizers_hold_an_object_until_the_last_is_gone() -> None:
    async with running() as c:
        path = "/api/v1/namespaces/default/configmaps"
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "finalizers": ["x.io/a", "x.io/b"]}}
        await c.ok("POST", path, body)
        dying = await c.ok("DELETE", f"{path}/m")
        assert "deletionTimestamp" in dying["metadata"]
        more = {"metadata": {"finalizers": ["x.io/a", "x.io/c"]}}
        code, refused = await c.send("PATCH", f"{path}/m", more, MERGE)
        assert (code, refused["reason"]) == (422, "Invalid")
        await c.ok("PATCH", f"{path}/m", {"metadata": {"finalizers": ["x.io/b"]}}, MERGE)
        await c.ok("GET", f"{path}/m")
        await c.ok("PATCH", f"{path}/m", {"metadata": {"finalizers": None}}, MERGE)
        assert (await c.send("GET", f"{path}/m"))[0] == 404


async def test_orphan_and_foreground_leave_a_finalizer() -> None:
    async with running() as c:
        path = "/api/v1/namespaces/default/configmaps"
        for policy, finalizer in (("Orphan", "orphan"), ("Foreground", "foregroundDeletion")):
            await c.ok("POST", path, {"metadata": {"name": policy.lower()}})
            dying = await c.ok("DELETE", f"{path}/{policy.lower()}", {"propagationPolicy": policy})
            assert dying["metadata"]["finalizers"] == [finalizer]
        code, answer = await c.send("DELETE", f"{path}/orphan", {"propagationPolicy": "Sideways"})
        assert (code, answer["reason"]) == (422, "Invalid")


async def test_namespaces_wait_for_their_controller() -> None:
    async with running() as c:
        await c.ok("POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
        dying = await c.ok("DELETE", "/api/v1/namespaces/team")
        assert dying["status"]["phase"] == "Terminating"
        code, answer = await c.send("POST", "/api/v1/namespaces/team/pods", pod("a"))
        assert code == 403
        assert answer["details"]["causes"][0]["reason"] == "NamespaceTerminating"
        dying["spec"]["finalizers"] = []
        await c.ok("PUT", "/api/v1/namespaces/team/finalize", dying)
        assert (await c.send("GET", "/api/v1/namespaces/team"))[0] == 404
        code, answer = await c.send("DELETE", "/api/v1/namespaces/default")
        assert (code, answer["message"]) == (
            403,
            'namespaces "default" is forbidden: this namespace may not be deleted',
        )


async def test_delete_collection_takes_what_is_selected() -> None:
    async with running() as c:
        for name in ("a", "b", "c"):
            await c.ok("POST", PODS, pod(name))
        gone = await c.ok("DELETE", f"{PODS}?labelSelector=app%20in%20(a,b)")
        assert [item["metadata"]["name"] for item in gone["items"]] == ["a", "b"]
        left = await c.ok("GET", PODS)
        assert [item["metadata"]["name"] for item in left["items"]] == ["c"]


async def test_preconditions() -> None:
    async with running() as c:
        made = await c.ok("POST", PODS, pod("a"))
        for given, word in (({"uid": "other"}, "UID"), ({"resourceVersion": "1"}, "ResourceVersion")):
            code, answer = await c.send("DELETE", f"{PODS}/a", {"preconditions": given})
            assert (code, answer["reason"]) == (409, "Conflict")
            assert f"the {word} in the precondition" in answer["message"]
        uid = made["metadata"]["uid"]
        await c.ok("DELETE", f"{PODS}/a", {"preconditions": {"uid": uid}})


async def test_dry_run_changes_nothing() -> None:
    async with running() as c:
        made = await c.ok("POST", f"{PODS}?dryRun=All", pod("a"))
        assert "resourceVersion" not in made["metadata"]
        assert (await c.send("GET", f"{PODS}/a"))[0] == 404
        await c.ok("POST", PODS, pod("a"))
        patched = await c.ok("PATCH", f"{PODS}/a?dryRun=All", {"metadata": {"labels": {"x": "y"}}}, MERGE)
        assert patched["metadata"]["labels"] == {"app": "a", "x": "y"}
        await c.ok("DELETE", f"{PODS}/a?dryRun=All")
        found = await c.ok("GET", f"{PODS}/a")
        assert found["metadata"]["labels"] == {"app": "a"}
        code, answer = await c.send("POST", f"{PODS}?dryRun=Some", pod("b"))
        assert (code, answer["details"]["causes"][0]["field"]) == (422, "dryRun")


async def test_status_is_written_through_its_subresource_only() -> None:
    async with running() as c:
        await c.ok("POST", PODS, pod("a"))
        patched = await c.ok("PATCH", f"{PODS}/a", {"status": {"phase": "Running"}}, MERGE)
        assert patched["status"]["phase"] == "Pending"
        change = {"status": {"phase": "Running"}, "spec": {"priority": 7}}
        patched = await c.ok("PATCH", f"{PODS}/a/status", change, STRATEGIC)
        assert (patched["status"]["phase"], patched["spec"]["priority"]) == ("Running", 0)
        assert patched["metadata"]["generation"] == 1


async def test_writes_without_effect_keep_the_revision() -> None:
    async with running() as c:
        made = await c.ok("POST", PODS, pod("a"))
        same = await c.ok("PATCH", f"{PODS}/a", {"metadata": {"labels": {"app": "a"}}}, MERGE)
        assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_generated_names_and_name_texts() -> None:
    async with running() as c:
        body = pod("x")
        body["metadata"] = {"generateName": "job-"}
        names = {(await c.ok("POST", PODS, body))["metadata"]["name"] for _ in range(20)}
        assert len(names) == 20
        code, answer = await c.send("POST", PODS, {**body, "metadata": {}})
        assert (code, answer["details"]["causes"][0]["field"]) == (422, "metadata.name")


async def test_server_side_apply_shares_an_object() -> None:
    async with running() as c:
        path = "/apis/apps/v1/namespaces/default/deployments/web"
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
        body = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template},
        }
        code, made = await c.send("PATCH", f"{path}?fieldManager=one", json.dumps(body), APPLY)
        assert (code, made["spec"]["replicas"]) == (201, 2)
        part = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 5}}
        code, answer = await c.send("PATCH", f"{path}?fieldManager=two", json.dumps(part), APPLY)
        assert (code, answer["details"]["causes"][0]["field"]) == (409, ".spec.replicas")
        code, forced = await c.send("PATCH", f"{path}?fieldManager=two&force=true", json.dumps(part), APPLY)
        assert (code, forced["spec"]["replicas"]) == (200, 5)
        scaled = await c.ok("PATCH", f"{path}/scale", {"spec": {"replicas": 7}}, MERGE)
        assert (scaled["spec"], scaled["status"]) == ({"replicas": 7}, {"replicas": 0, "selector": "a=b"})
        table = "application/json;as=Table;v=v1;g=meta.k8s.io"
        _, shown = await c.send("GET", f"{path}/scale", Accept=table)
        assert [each["name"] for each in shown["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
        assert shown["rows"][0]["cells"][1:] == [7, 0, "0s"]
        code, answer = await c.send("PATCH", f"{path}/scale", {"spec": {"replicas": -1}}, MERGE)
        assert code == 422


async def test_owners_of_events_and_leases_may_put_what_is_not_there() -> None:
    async with running() as c:
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l"
        body = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}}
        assert (await c.send("PUT", path, body))[0] == 201
        code, answer = await c.send("PUT", path, body)
        assert (code, answer["details"]["causes"][0]["field"]) == (422, "metadata.resourceVersion")
        code, answer = await c.send("PUT", f"{NODES}/none", {"metadata": {"name": "none"}})
        assert code == 404


async def _budget(c: Client, **status: int) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    await c.ok("POST", BUDGETS, {"metadata": {"name": "b"}, "spec": spec})
    if status:
        await c.ok("PATCH", f"{BUDGETS}/b/status", {"status": status}, MERGE)


async def _running_pod(c: Client, name: str) -> None:
    body = pod(name)
    body["metadata"]["labels"] = {"app": "web"}
    await c.ok("POST", PODS, body)
    await c.bind(name, "n1")
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await c.ok("PATCH", f"{PODS}/{name}/status", ready, STRATEGIC)


async def test_eviction_asks_the_budget() -> None:
    async with running() as c:
        await _budget(c, disruptionsAllowed=1, observedGeneration=1, currentHealthy=2, desiredHealthy=1, expectedPods=2)
        for name in ("a", "b"):
            await _running_pod(c, name)
        evict = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
        code, answer = await c.send("POST", f"{PODS}/a/eviction", evict)
        assert (code, answer["status"]) == (201, "Success")
        found = await c.ok("GET", f"{PODS}/a")
        assert found["metadata"]["deletionGracePeriodSeconds"] == 30
        assert found["status"]["conditions"][-1]["reason"] == "EvictionByEvictionAPI"
        evict["metadata"]["name"] = "b"
        code, answer = await c.send("POST", f"{PODS}/b/eviction", evict)
        assert (code, answer["reason"]) == (429, "TooManyRequests")
        cause = "The disruption budget b needs 1 healthy pods and has 2 currently"
        assert answer["details"]["causes"] == [{"reason": "DisruptionBudget", "message": cause}]


async def test_eviction_waits_for_a_budget_that_was_not_looked_at() -> None:
    async with running() as c:
        await _budget(c)
        await _running_pod(c, "a")
        code, answer = await c.send("POST", f"{PODS}/a/eviction", {"metadata": {"name": "a"}})
        assert (code, answer["details"]["retryAfterSeconds"]) == (429, 10)


async def test_bindings() -> None:
    async with running() as c:
        await c.ok("POST", NODES, node("n1", topology__kubernetes_io="x", **{"topology.kubernetes.io/zone": "z"}))
        await c.ok("POST", PODS, pod("a"))
        await c.ok("PATCH", f"{PODS}/a/status", {"status": {"nominatedNodeName": "n9"}}, MERGE)
        assert (await c.bind("a", "n1"))[0] == 201
        bound = await c.ok("GET", f"{PODS}/a")
        assert bound["spec"]["nodeName"] == "n1"
        assert bound["metadata"]["labels"]["topology.kubernetes.io/zone"] == "z"
        assert "nominatedNodeName" not in bound["status"]
        assert [(x["type"], x["status"]) for x in bound["status"]["conditions"]] == [("PodScheduled", "True")]
        assert (await c.bind("a", "n1"))[0] == 409


async def test_priority_admission() -> None:
    async with running() as c:
        classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
        await c.ok("POST", classes, {"metadata": {"name": "low"}, "value": 5, "globalDefault": True})
        made = await c.ok("POST", PODS, pod("a"))
        assert (made["spec"]["priority"], made["spec"]["priorityClassName"]) == (5, "low")
        made = await c.ok("POST", PODS, pod("b", priorityClassName="system-node-critical"))
        assert made["spec"]["priority"] == 2000001000
        code, answer = await c.send("POST", PODS, pod("c", priority=9))
        assert code == 403
        assert "the integer value of priority (9) must not be provided in pod spec" in answer["message"]
        code, answer = await c.send("PATCH", f"{classes}/low", {"value": 6}, MERGE)
        assert (code, answer["details"]["causes"][0]["field"]) == (422, "value")
        code, answer = await c.send("POST", classes, {"metadata": {"name": "big"}, "value": 2_000_000_000})
        assert code == 422


async def test_limit_ranges_fill_and_refuse() -> None:
    async with running() as c:
        limits = [{"type": "Container", "max": {"cpu": "1"}, "defaultRequest": {"cpu": "100m"}}]
        body = {"metadata": {"name": "l"}, "spec": {"limits": limits}}
        await c.ok("POST", "/api/v1/namespaces/default/limitranges", body)
        made = await c.ok("POST", PODS, pod("a"))
        assert made["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "100m"}}
        big = pod("b", containers=[{"name": "c", "image": "i", "resources": {"limits": {"cpu": "2"}}}])
        code, answer = await c.send("POST", PODS, big)
        assert code == 403
        assert "maximum cpu usage per Container is 1, but limit is 2" in answer["message"]


async def test_limit_ranges_tell_what_they_gave_and_what_they_miss() -> None:
    async with running() as c:
        of_containers = {"type": "Container", "default": {"memory": "1Gi"}, "defaultRequest": {"cpu": "100m"}}
        limits = [
            of_containers,
            {"type": "Pod", "max": {"memory": "1Gi"}},
            {"type": "PersistentVolumeClaim", "min": {"storage": "2Gi"}, "max": {"storage": "4Gi"}},
        ]
        namespace = "/api/v1/namespaces/default"
        await c.ok("POST", f"{namespace}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": limits}})
        made = await c.ok("POST", PODS, pod("a"))
        told = "LimitRanger plugin set: cpu, memory request for container c; memory limit for container c"
        assert made["metadata"]["annotations"] == {"kubernetes.io/limit-ranger": told}
        two = pod("b", containers=[{"name": "c", "image": "i"}, {"name": "d", "image": "i"}])
        code, answer = await c.send("POST", PODS, two)
        why = "maximum memory usage per Pod is 1Gi, but limit is 2Gi"
        assert (code, answer["message"]) == (403, f'pods "b" is forbidden: {why}')
        for storage, why in (
            ("1Gi", "minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi"),
            ("5Gi", "maximum storage usage per PersistentVolumeClaim is 4Gi, but request is 5Gi"),
        ):
            spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
            claim = {"metadata": {"name": "c"}, "spec": spec}
            code, answer = await c.send("POST", f"{namespace}/persistentvolumeclaims", claim)
            assert (code, answer["message"]) == (403, f'persistentvolumeclaims "c" is forbidden: {why}')


async def test_quota() -> None:
    async with running() as c:
        quotas = "/api/v1/namespaces/default/resourcequotas"
        await c.ok("POST", quotas, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}})
        await c.ok("POST", PODS, pod("a"))
        code, answer = await c.send("POST", PODS, pod("b"))
        assert code == 403
        wanted = 'pods "b" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'
        assert answer["message"] == wanted
        found = await c.ok("GET", f"{quotas}/q")
        assert found["status"] == {"hard": {"pods": "1"}, "used": {"pods": "1"}}


async def test_match_label_keys_become_terms() -> None:
    async with running() as c:
        constraint = {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"x": "y"}},
            "matchLabelKeys": ["app"],
        }
        made = await c.ok("POST", PODS, pod("a", topologySpreadConstraints=[constraint]))
        terms = made["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchExpressions"]
        assert terms == [{"key": "app", "operator": "In", "values": ["a"]}]


async def test_lists_in_pages_stay_consistent() -> None:
    async with running(history=50) as c:
        for i in range(6):
            await c.ok("POST", PODS, pod(f"p{i}"))
        first = await c.ok("GET", f"{PODS}?limit=2")
        assert first["metadata"]["remainingItemCount"] == 4
        await c.ok("DELETE", f"{PODS}/p3")
        await c.ok("POST", PODS, pod("p25"))
        token = first["metadata"]["continue"]
        rest = await c.ok("GET", f"{PODS}?limit=9&continue={token}")
        assert [item["metadata"]["name"] for item in rest["items"]] == ["p2", "p3", "p4", "p5"]
        assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        version = first["metadata"]["resourceVersion"]
        old = await c.ok("GET", f"{PODS}?resourceVersion={version}&resourceVersionMatch=Exact")
        assert len(old["items"]) == 6
        c.plane.store.compact(c.plane.store.revision)
        code, answer = await c.send("GET", f"{PODS}?limit=9&continue={token}")
        assert (code, answer["reason"]) == (410, "Expired")
        again = await c.ok("GET", f"{PODS}?limit=9&continue={answer['metadata']['continue']}")
        assert [item["metadata"]["name"] for item in again["items"]] == ["p2", "p25", "p4", "p5"]
        code, answer = await c.send("GET", f"{PODS}?resourceVersion={version}&resourceVersionMatch=Exact")
        assert (code, answer["reason"]) == (410, "Expired")


async def test_long_lists_are_streamed_and_long_bodies_compressed() -> None:
    async with running() as c:
        maps = c.plane.cluster.collection("configmaps")
        for i in range(4500):
            meta = {"name": f"m{i:05}", "namespace": "default", "uid": str(i)}
            maps.create({"metadata": meta, "data": {"k": "v" * 20}})
        found = await c.ok("GET", "/api/v1/configmaps")
        assert [item["metadata"]["name"] for item in found["items"]] == [f"m{i:05}" for i in range(4500)]
        async with c.session.get("/api/v1/configmaps?limit=1500") as answer:
            assert answer.headers.get("Content-Encoding") == "gzip"
            assert len((await answer.json())["items"]) == 1500


async def test_selected_pages_over_many_objects() -> None:
    async with running() as c:
        maps = c.plane.cluster.collection("configmaps")
        for i in range(12_000):
            meta = {"name": f"m{i:05}", "namespace": "default", "uid": str(i), "labels": {"odd": str(i % 2)}}
            maps.create({"metadata": meta})
        for limit in (1, 2500, 2501, 6000, 0):
            names: list[str] = []
            path = f"/api/v1/configmaps?labelSelector=odd%3D1&limit={limit}"
            token = ""
            for _ in range(7):
                found = await c.ok("GET", f"{path}&continue={token}" if token else path)
                names += [item["metadata"]["name"] for item in found["items"]]
                assert limit == 0 or len(found["items"]) <= limit
                token = found["metadata"].get("continue", "")
                if not token:
                    break
            wanted = [f"m{i:05}" for i in range(1, 12_000, 2)]
            assert names == (wanted if limit != 1 else wanted[:7])


@pytest.mark.parametrize(
    ("method", "path", "body", "content_type", "code", "reason"),
    [
        ("POST", PODS, b"", "application/json", 400, "BadRequest"),
        ("POST", PODS, b"[1]", "application/json", 400, "BadRequest"),
        ("POST", PODS, b"\xff\xfe", "application/json", 400, "BadRequest"),
        ("POST", PODS, b"{}", "application/vnd.kubernetes.protobuf", 400, "BadRequest"),
        ("POST", PODS, b"x: [", "application/yaml", 400, "BadRequest"),
        ("POST", f"{PODS}/x/binding", b"{", "application/json", 400, "BadRequest"),
        ("POST", f"{PODS}/x/binding", b'{"target": 5}', "application/json", 400, "BadRequest"),
        ("POST", f"{PODS}/x", b"{}", "application/json", 405, "MethodNotAllowed"),
        ("PUT", PODS, b"{}", "application/json", 405, "MethodNotAllowed"),
        ("DELETE", "/api/v1/namespaces", None, "application/json", 405, "MethodNotAllowed"),
        ("GET", "/apis/authentication.k8s.io/v1/tokenreviews", None, "application/json", 405, "MethodNotAllowed"),
        ("PATCH", f"{NODES}/x", b"{", MERGE, 400, "BadRequest"),
        ("PATCH", f"{NODES}/x", b"{}", MERGE, 404, "NotFound"),
        ("GET", f"{PODS}/x/nonsense", None, "application/json", 404, "NotFound"),
        ("GET", f"{PODS}?resourceVersion=abc", None, "application/json", 422, "Invalid"),
        ("GET", f"{PODS}?watch=maybe", None, "application/json", 400, "BadRequest"),
        ("POST", f"{PODS}?fieldValidation=Odd", b"{}", "application/json", 422, "Invalid"),
        ("DELETE", f"{PODS}/x", b"{", "application/json", 400, "BadRequest"),
    ],
)
async def test_bad_requests(
    method: str, path: str, body: bytes | None, content_type: str, code: int, reason: str
) -> None:
    async with running() as c:
        found, answer = await c.send(method, path, body, content_type)
        assert (found, answer["reason"]) == (code, reason), answer


async def test_a_body_too_big_is_refused() -> None:
    async with running() as c:
        code, answer = await c.send("POST", PODS, io.BytesIO(b" " * (4 << 20)))
        assert (code, answer["reason"]) == (413, "RequestEntityTooLarge")


async def test_garbage_on_a_connection_harms_nobody() -> None:
    async with running() as c:
        reader, writer = await asyncio.open_connection(c.plane.host, c.plane.port)
        writer.write(b"\x16\x03\x01 nonsense\r\n\r\n")
        await writer.drain()
        assert b"400" in await reader.read(200)
        writer.close()
        await writer.wait_closed()
        assert (await c.ok("GET", "/version"))["gitVersion"] == "v1.36.2"


VALIDATION: list[tuple[dict[str, Any], str]] = [
    ({"containers": [{"name": "A", "image": "i"}]}, "spec.containers[0].name"),
    ({"containers": [{"name": "c"}]}, "spec.containers[0].image"),
    ({"restartPolicy": "Sometimes"}, "spec.restartPolicy"),
    ({"nodeSelector": {"a b": "c"}}, "spec.nodeSelector"),
    ({"tolerations": [{"key": "a", "operator": "Odd"}]}, "spec.tolerations[0].operator"),
    ({"tolerations": [{"operator": "Equal"}]}, "spec.tolerations[0].operator"),
    ({"schedulingGates": [{"name": "a"}, {"name": "a"}]}, "spec.schedulingGates[1]"),
    ({"schedulingGates": [{"name": "a"}], "nodeName": "n"}, "spec.nodeName"),
    (
        {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}}]}}},
        "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
    ),
    (
        {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0}]}}},
        "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight",
    ),
    ({"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 70000}]}]}, "spec.containers[0].ports[0]"),
    (
        {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"example.com/gpu": "1"}}}]},
        "spec.containers[0].resources.limits",
    ),
]


@pytest.mark.parametrize(("spec", "field"), VALIDATION)
async def test_pod_validation_names_the_field(spec: dict[str, Any], field: str) -> None:
    async with running() as c:
        code, answer = await c.send("POST", PODS, pod("a", **spec))
        assert (code, answer["reason"]) == (422, "Invalid")
        assert answer["details"]["causes"][0]["field"].startswith(field), answer["details"]


async def test_answers_to_people_are_indented() -> None:
    async with running() as c:
        await c.ok("POST", PODS, pod("a"))

        async def lines(path: str, agent: str = "kubectl/v1") -> int:
            async with c.session.get(path, headers={"User-Agent": agent}) as answer:
                text = await answer.text()
                assert json.loads(text)
                return len(text.splitlines())

        assert await lines(f"{PODS}/a") == 1
        assert await lines(f"{PODS}/a?pretty=true") > 20
        assert await lines(f"{PODS}/a", "curl/8.0") > 20
        assert await lines(f"{PODS}/none", "curl/8.0") > 5
        assert await lines(f"{PODS}/a?pretty=false", "curl/8.0") == 1


async def test_strict_errors_come_in_the_order_of_the_document() -> None:
    async with running() as c:
        body = b'{"metadata":{"name":"d","name":"e"},"spec":{"x":1,"containers":[{"name":"c","image":"i"}]}}'
        code, answer = await c.send("POST", f"{PODS}?fieldValidation=Strict", body)
        words = 'strict decoding error: duplicate field "metadata.name", unknown field "spec.x"'
        assert (code, answer["message"].endswith(words)) == (400, True), answer
