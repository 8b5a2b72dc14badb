// api_types.mjs DESCRIPTION: prints the TypeScript types of the API's answers, made from openapi.json:
// `Schemas` by name, and `Answers` by method and path.
import { readFileSync } from "node:fs";

const plain = { string: "string", integer: "number", number: "number", boolean: "boolean", null: "null" };

function typeOf(schema) {
    if (schema === undefined) {
        return "unknown";
    }
    if (schema.$ref) {
        return `Schemas[${JSON.stringify(schema.$ref.split("/").at(-1))}]`;
    }
    if (schema.allOf || schema.oneOf) {
        return `(${(schema.allOf ?? schema.oneOf).map(typeOf).join(schema.allOf ? " & " : " | ")})`;
    }
    if (schema.enum) {
        return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
    }
    return [schema.type ?? []].flat().map((type) => oneOf(type, schema)).join(" | ") || "unknown";
}

function oneOf(type, schema) {
    if (type === "array") {
        return `(${typeOf(schema.items)})[]`;
    }
    if (type !== "object") {
        return plain[type];
    }
    const properties = Object.entries(schema.properties ?? {}).map(([name, of]) => `${JSON.stringify(name)}: ${typeOf(of)};`);
    return properties.length > 0 ? `{ ${properties.join(" ")} }` : `Record<string, ${typeOf(schema.additionalProperties || undefined)}>`;
}

export function typesOf(file) {
    const { paths, components } = JSON.parse(readFileSync(file, "utf8"));
    const schemas = Object.entries(components.schemas).map(([name, schema]) => `    ${name}: ${typeOf(schema)};`);
    const answers = Object.entries(paths).flatMap(([path, methods]) =>
        Object.entries(methods).flatMap(([method, { responses }]) => {
            const schema = (responses["200"] ?? responses["202"]).content?.["application/json"]?.schema;
            return schema ? [`    ${JSON.stringify(`${method} ${path}`)}: ${typeOf(schema)};`] : [];
        }),
    );
    return [
        `// Made by api_types.mjs from openapi.json.`,
        ...["export interface Schemas {", ...schemas, "}", ""],
        ...["export interface Answers {", ...answers, "}", ""],
    ].join("\n");
}
