// What a schema asks for: its fields, their choices, and what was typed as a value. Pure.

import type { JsonObject } from "agent-sidecar-client/protocol";

export interface Field {
  /** Its name in the answer; none where the answer is the value itself. */
  name?: string;
  label?: string;
  isRequired: boolean;
  schema: JsonObject;
}

export interface Choice {
  label: string;
  value: unknown;
}

/** The fields of a schema, those that are required first. */
export function fieldsOf(schema: JsonObject | undefined): Field[] {
  if (!isObject(schema?.properties)) {
    return [{ isRequired: true, schema: schema ?? {} }];
  }
  const required = Array.isArray(schema.required) ? schema.required : [];
  const fields = Object.entries(schema.properties).map(([name, field]) => fieldOf(name, isObject(field) ? field : {}, required.includes(name)));
  return [...fields.filter((field) => field.isRequired), ...fields.filter((field) => !field.isRequired)];
}

/** The values among which a schema lets choose; none where any value goes. */
export function choicesOf(schema: JsonObject): Choice[] | undefined {
  if (schema.type === "boolean") {
    return [
      { label: "Yes", value: true },
      { label: "No", value: false },
    ];
  }
  const titled = [schema.oneOf, schema.anyOf].find(Array.isArray);
  if (titled?.every((each): each is JsonObject => isObject(each) && "const" in each)) {
    return titled.map((each) => ({ label: String(each.title ?? each.const), value: each.const }));
  }
  if (Array.isArray(schema.enum)) {
    const names: unknown[] = Array.isArray(schema.enumNames) ? schema.enumNames : [];
    return schema.enum.map((value: unknown, index) => ({ label: String(names[index] ?? value), value }));
  }
  return undefined;
}

/** What was typed, as a value of the field's schema, or what is wrong with it. */
export function readTyped(typed: string, { schema, isRequired }: Field): { value?: unknown; fault?: string } {
  if (typed === "" && !isRequired) {
    return { value: "" };
  }
  switch (schema.type) {
    case undefined:
    case "string":
      return readText(typed, schema);
    case "number":
    case "integer":
      return readNumber(typed, schema);
    default:
      return readJson(typed, String(schema.type));
  }
}

function readText(typed: string, schema: JsonObject): { value?: string; fault?: string } {
  const length = [...typed].length;
  if (typeof schema.minLength === "number" && length < schema.minLength) {
    return { fault: `At least ${schema.minLength} characters are wanted` };
  }
  if (typeof schema.maxLength === "number" && length > schema.maxLength) {
    return { fault: `At most ${schema.maxLength} characters are wanted` };
  }
  return { value: typed };
}

function readNumber(typed: string, schema: JsonObject): { value?: number; fault?: string } {
  const value = typed.trim() === "" ? Number.NaN : Number(typed);
  if (!Number.isFinite(value) || (schema.type === "integer" && !Number.isInteger(value))) {
    return { fault: schema.type === "integer" ? "A whole number is wanted" : "A number is wanted" };
  }
  const isTooSmall = typeof schema.minimum === "number" && value < schema.minimum;
  const isTooLarge = typeof schema.maximum === "number" && value > schema.maximum;
  return isTooSmall || isTooLarge ? { fault: "The number is out of bounds" } : { value };
}

function readJson(typed: string, type: string): { value?: unknown; fault?: string } {
  try {
    const value: unknown = JSON.parse(typed);
    if (type === "array" ? Array.isArray(value) : isObject(value)) {
      return { value };
    }
  } catch {
    // Said below.
  }
  return { fault: `An ${type} is wanted, as JSON` };
}

function fieldOf(name: string, schema: JsonObject, isRequired: boolean): Field {
  const title = typeof schema.title === "string" ? schema.title : name;
  const label = typeof schema.description === "string" ? `${title} (${schema.description})` : title;
  return { name, label, isRequired, schema };
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
