"""The AdmissionReview as the API server sends it and takes it back; malformed ones are told apart."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.review import MAX_WARNING, Answer, BadReview, Refusal, named, read_review, written_answer

REQUEST: dict[str, Any] = {
    "uid": "u-1",
    "kind": {"group": "", "version": "v1", "kind": "Pod"},
    "operation": "CREATE",
    "namespace": "team",
    "name": "pod-1",
    "userInfo": {"username": "someone"},
    "object": {"metadata": {"name": "pod-1"}},
    "oldObject": None,
}


def review(request: Any = REQUEST, **changes: Any) -> bytes:
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request, **changes}
    return json.dumps(body).encode()


def answered(answer: Answer) -> dict[str, Any]:
    body = json.loads(written_answer("u-1", answer))
    assert (body["apiVersion"], body["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response: dict[str, Any] = body["response"]
    assert response.pop("uid") == "u-1"
    return response


def test_request_is_read_as_it_was_sent() -> None:
    read = read_review(review())
    assert (read.uid, read.kind, read.operation, read.namespace, read.user) == (
        "u-1", "Pod", "CREATE", "team", "someone",
    )  # fmt: skip
    assert read.new == {"metadata": {"name": "pod-1"}}
    assert read.old is None


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "no JSON"),
        (b"\xff", "no JSON"),
        (b"[]", "no AdmissionReview"),
        (review(kind="Pod"), "no AdmissionReview"),
        (review(apiVersion="admission.k8s.io/v1beta1"), "only admission.k8s.io/v1 is answered"),
        (review(None), "request.uid is missing"),
        (review(REQUEST | {"uid": 7}), "request.uid is missing"),
    ],
)
def test_body_that_is_no_review_is_told_in_one_line(body: bytes, said: str) -> None:
    with pytest.raises(BadReview, match=said):
        read_review(body)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from([*REQUEST, "x"]), inner, max_size=6)
        ),
    )
)
def test_whatever_a_request_holds_is_read_or_refused(request: Any) -> None:
    try:
        assert read_review(review(request)).uid == request["uid"]
    except BadReview:
        assert not isinstance(request, dict) or not isinstance(request.get("uid"), str) or not request["uid"]


def test_answers_as_the_api_server_takes_them() -> None:
    assert answered(Answer()) == {"allowed": True}
    assert answered(Answer(Refusal("NoRoom", "none is free"))) == {
        "allowed": False,
        "status": {"code": 403, "reason": "NoRoom", "message": "none is free"},
    }
    patched = answered(Answer(patch=({"op": "add", "path": "/x", "value": 1},)))
    assert patched["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(patched["patch"])) == [{"op": "add", "path": "/x", "value": 1}]


def test_warnings_keep_the_length_that_the_api_server_keeps() -> None:
    (warning,) = answered(Answer(warnings=("x" * 1000,)))["warnings"]
    assert len(warning) == MAX_WARNING
    assert len(answered(Answer(warnings=("x",) * 50))["warnings"]) == 10


def test_result_is_one_word() -> None:
    assert [
        one.result
        for one in (
            Answer(),
            Answer(Refusal("NoRoom", "")),
            Answer(Refusal("ServiceUnavailable", "", 503)),
            Answer(is_unchecked=True),
            Answer(patch=({},)),
        )
    ] == ["allowed", "refused", "failed", "unchecked", "gated"]


def test_names_in_a_sentence_are_sorted_and_few() -> None:
    assert named(["b", "a"]) == "a, b"
    assert named(list("gfedcba"), 3) == "a, b, c and 4 more"
