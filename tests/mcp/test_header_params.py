"""Parameters that are mirrored into headers. Source: MCP 2026-07-28, basic/transports/streamable-http."""

from typing import Any

import pytest

from sidecar.mcp.header_params import HeaderParam, HeaderParamError, header_params, header_value, param_headers

REGION = {"type": "string", "x-mcp-header": "Region"}


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_annotated_parameters_are_found_where_chains_of_properties_lead() -> None:
    nested = schema(region=REGION, where=schema(zone={"type": "integer", "x-mcp-header": "Zone"}), other={})
    assert header_params(nested) == (HeaderParam("Region", ("region",)), HeaderParam("Zone", ("where", "zone")))
    assert header_params({"type": "object"}) == ()


def test_a_property_or_a_default_of_that_name_is_no_annotation() -> None:
    harmless = schema(**{"x-mcp-header": {"type": "string"}, "a": {"default": {"x-mcp-header": "A"}}})
    assert header_params(harmless) == ()


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (schema(a={"type": "string", "x-mcp-header": ""}), "'a' is no name of a header"),
        (schema(a={"type": "string", "x-mcp-header": 7}), "'a' is no name of a header"),
        (schema(a={"type": "string", "x-mcp-header": "My Region"}), "'a' is no name of a header"),
        (schema(a={"type": "string", "x-mcp-header": "Région"}), "'a' is no name of a header"),
        (schema(a={"type": "string", "x-mcp-header": "a\t1"}), "'a' is no name of a header"),
        (schema(a={"type": "number", "x-mcp-header": "A"}), "'a' is for a string, an integer or a boolean only"),
        (schema(a={"type": ["string", "null"], "x-mcp-header": "A"}), "only"),
        (schema(a={"x-mcp-header": "A"}), "only"),
        (schema(a=schema(b={"type": "null", "x-mcp-header": "A"})), "'a.b' is for"),
        (schema(a=REGION, b={"type": "string", "x-mcp-header": "REGION"}), "'region' is used for two parameters"),
        (schema(a={"type": "array", "items": REGION}), "no chain of properties"),
        ({**schema(), "anyOf": [schema(a=REGION)]}, "no chain of properties"),
        ({**schema(), "$defs": {"a": REGION}}, "no chain of properties"),
        ({**schema(), "if": schema(a=REGION)}, "no chain of properties"),
        ({**schema(), "patternProperties": {"a": REGION}}, "no chain of properties"),
        ({**schema(), "x-mcp-header": "A"}, "no chain of properties"),
    ],
)
def test_an_annotation_that_breaks_the_rules_is_refused_with_the_reason(broken: Any, reason: str) -> None:
    with pytest.raises(HeaderParamError, match=reason):
        header_params(broken)


def test_values_become_headers_and_what_is_absent_or_null_does_not() -> None:
    params = header_params(
        schema(
            region=REGION,
            where=schema(zone={"type": "integer", "x-mcp-header": "Zone"}),
            dry={"type": "boolean", "x-mcp-header": "Dry"},
        )
    )
    full = {"region": "us-west1", "where": {"zone": -7}, "dry": False}
    assert param_headers(params, full) == {
        "Mcp-Param-Region": "us-west1",
        "Mcp-Param-Zone": "-7",
        "Mcp-Param-Dry": "false",
    }
    assert param_headers(params, {"region": None, "where": "nowhere"}) == {}
    assert param_headers(params, {"where": {"zone": 2.0}}) == {"Mcp-Param-Zone": "2"}
    assert param_headers(params, {"where": {"zone": 2**53}, "region": ["a"]}) == {}


@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("us-west1", "us-west1"),
        ("", ""),
        ("a b\tc", "a b\tc"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("=?base64?literal", "=?base64?literal"),
        ("\x7f", "=?base64?fw==?="),
    ],
)
def test_what_plain_ascii_cannot_carry_goes_in_base64(value: str, header: str) -> None:
    assert header_value(value) == header
