"""Token and access reviews (`pkg/registry/{authentication,authorization}`)."""

from __future__ import annotations

from typing import Any

from skedge.controlplane.access import Access, User
from skedge.controlplane.errors import invalid, invalid_value, required
from skedge.controlplane.negotiate import read_object
from skedge.controlplane.normal import normal
from skedge.controlplane.request import Target
from skedge.controlplane.writing import Body, check_kind, gvk

JSON = dict[str, Any]

AUDIENCE = "https://kubernetes.default.svc"


def review(access: Access, target: Target, body: Body, user: User) -> JSON:
    """Answer a review: the object that was sent, with its status."""
    resource = target.resource
    obj = read_object(body.data, body.content_type, resource.kind)
    check_kind(obj, resource.kind, resource.api_version, resource.group)
    obj = normal(obj, gvk(resource), resource.kind, resource.version)
    spec: JSON = obj.get("spec") or {}
    answer: JSON = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {}, "spec": spec}
    if resource.kind == "TokenReview":
        answer["status"] = _token(access, spec)
    elif resource.kind == "SelfSubjectReview":
        del answer["spec"]
        answer["status"] = {"userInfo": user.info()}
    elif resource.kind == "SelfSubjectRulesReview":
        answer["status"] = access.rules_of(user, spec.get("namespace") or "default")
    else:
        if resource.kind == "SubjectAccessReview":
            if not spec.get("user") and not spec.get("groups"):
                raise invalid(
                    resource.kind,
                    resource.group,
                    "",
                    [invalid_value("spec.user", "", "at least one of user or group must be specified")],
                )
            user = User(spec.get("user") or "", tuple(spec.get("groups") or ()))
        attributes, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if attributes is None and path is None:
            text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            raise invalid(resource.kind, resource.group, "", [invalid_value("spec.resourceAttributes", None, text)])
        answer["status"] = _verdict(access, user, attributes, path)
    return answer


def _token(access: Access, spec: JSON) -> JSON:
    token = spec.get("token")
    if not token:
        raise invalid(
            "TokenReview",
            "authentication.k8s.io",
            "",
            [required("spec.token", "token is required for TokenReview in authentication")],
        )
    user = access.user_of_token(token)
    if user is None:
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": user.info(), "audiences": [AUDIENCE]}


def _verdict(access: Access, user: User, attributes: JSON | None, path: JSON | None) -> JSON:
    if attributes is not None:
        resource, sub = attributes.get("resource", ""), attributes.get("subresource", "")
        allowed, reason = access.decide(
            user,
            attributes.get("verb", ""),
            attributes.get("group", ""),
            f"{resource}/{sub}" if sub else resource,
            attributes.get("namespace", ""),
            attributes.get("name", ""),
        )
    else:
        assert path is not None
        allowed, reason = access.decide_path(user, path.get("verb", ""), path.get("path", ""))
    status: JSON = {"allowed": allowed}
    if reason:
        status["reason"] = reason
    return status
