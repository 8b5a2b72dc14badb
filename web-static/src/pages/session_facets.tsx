// The filters of the session list: values that sessions have in common, and a range of days.
import { useAnswer, useKept } from "../answers";
import { api, type Facet } from "../api";
import { count } from "../format";
import { route, setParameters } from "../router";
import { Chip } from "../widgets/small";

const kinds = ["device", "state", "app", "build", "tag", "mark"] as const;

// Returns the start of the day, `later` days later, in ms since 1970 by the browser's clock. "" if
// the text is not a date.
function dayOf(text: string | null, later: number): string {
    const match = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text ?? "");
    return match ? String(new Date(Number(match[1]), Number(match[2]) - 1, Number(match[3]) + later).getTime()) : "";
}

// Returns the filters in the address as the parameters of the server's API.
export function filtersOf(parameters: URLSearchParams): Record<string, string> {
    return {
        search: parameters.get("q") ?? "",
        ...Object.fromEntries(kinds.map((kind) => [kind, parameters.get(kind) ?? ""])),
        since_ms: dayOf(parameters.get("since"), 0),
        until_ms: dayOf(parameters.get("until"), 1), // includes the whole last day
    };
}

function labelOf(facet: Facet): string {
    return facet.facet === "build" ? `${facet.label} ${facet.value.slice(0, 10)}` : facet.label;
}

function Day({ name, label }: { name: string; label: string }) {
    return (
        <label class="day">
            {label}{" "}
            <input
                class="adder"
                type="date"
                value={route.value.parameters.get(name) ?? ""}
                onChange={(event) => setParameters({ [name]: event.currentTarget.value })}
            />
        </label>
    );
}

export function Facets({ changes }: { changes: string }) {
    const parameters = route.value.parameters;
    const filters = filtersOf(parameters);
    const answer = useAnswer(`facets ${changes} ${JSON.stringify(filters)}`, (signal) => api.facets(filters, signal));
    const facets = useKept(answer.value, "")?.items ?? []; // the old values stay while new filters load; their counts are hidden meanwhile
    const of = (kind: string) => facets.filter((facet) => facet.facet === kind);
    return (
        <div class="chips selection" role="group" aria-label="Filters">
            {kinds.map((kind) => {
                const chosen = parameters.get(kind);
                const known = of(kind).find((facet) => facet.value === chosen);
                if (chosen) {
                    const label = `${kind}: ${known ? labelOf(known) : chosen}`;
                    return <Chip key={kind} label={label} onRemove={() => setParameters({ [kind]: "" })} />;
                }
                return of(kind).length === 0 ? null : (
                    <select
                        key={kind}
                        class="adder"
                        aria-label={`Only sessions with this ${kind}`}
                        value=""
                        onChange={(event) => setParameters({ [kind]: event.currentTarget.value })}
                    >
                        <option value="">{kind}</option>
                        {of(kind).map((facet) => (
                            <option key={facet.value} value={facet.value}>
                                {answer.isCurrent ? `${labelOf(facet)} (${count(facet.sessions)})` : labelOf(facet)}
                            </option>
                        ))}
                    </select>
                );
            })}
            <Day name="since" label="from" />
            <Day name="until" label="to" />
        </div>
    );
}
