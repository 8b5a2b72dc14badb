const NAME_LENGTH_MAX = 400;

// Parses JSON from the server. Names come from traced programs and may be hostile. Characters that
// change the direction of text are spelled out. Very long names are cut, and their length is
// appended.
export function parse(text: string) {
    const inert = text.replace(
        /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
        (letter) => `⟨U+${letter.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`,
    );
    const isLong = new RegExp(`[^"]{${NAME_LENGTH_MAX}}`).test(inert);
    return JSON.parse(inert, isLong ? shortened : undefined);
}

function shortened(key: string, value: unknown): unknown {
    const isText = ["sql", "document", "status", "tags", "result"].includes(key); // text to be edited, not a name
    return typeof value === "string" && value.length > NAME_LENGTH_MAX && !isText
        ? `${[...value.slice(0, NAME_LENGTH_MAX)].slice(0, -1).join("")}… (${value.length} characters)`
        : value;
}
