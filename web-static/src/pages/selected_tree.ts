// The call tree of a selection, made from the calls that began in it. All paths are loaded at once.
import { askQuestion, type PathNode, type RowOf, rowsOf, type TreePage } from "../api";
import { PART_MS, type Selection, valuesOf } from "../selection";
import type { TreeSource } from "./tree_model";

const ROWS = 20000;

type TreeRow = RowOf<"web.call_tree">;

function nodesOf(rows: readonly TreeRow[]): PathNode[] {
    const above = new Map<string, Set<number>>(); // path id -> functions on the path
    const nodes = new Map<string, PathNode>();
    for (const row of rows) {
        const id = String(row.path_id);
        const parent = row.parent_path_id === null ? null : String(row.parent_path_id);
        const callers = (parent && above.get(parent)) || new Set<number>();
        above.set(id, new Set([...callers, row.function_id]));
        const known = parent ? nodes.get(parent) : undefined;
        if (known) {
            known.child_count++;
        }
        nodes.set(id, {
            id,
            parent_id: parent,
            function_id: String(row.function_id),
            name: row.name,
            module: row.module,
            depth: row.depth,
            is_recursive: callers.has(row.function_id),
            calls: row.calls,
            open_calls: row.open_calls,
            total_ns: row.total_ns,
            self_ns: row.self_ns,
            known_ns: row.total_ns,
            p50_ns: null,
            p95_ns: null,
            unwound: 0,
            untrusted: 0,
            is_estimate: row.is_estimate !== 0,
            is_self_estimate: row.is_self_estimate !== 0,
            child_count: 0,
        });
    }
    return [...nodes.values()];
}

function sumOf(nodes: readonly PathNode[]): TreePage["rest"] {
    const sum = (pick: (node: PathNode) => number) => nodes.reduce((before, node) => before + pick(node), 0);
    return {
        paths: nodes.length,
        calls: sum((node) => node.calls),
        known_ns: sum((node) => node.known_ns),
        self_ns: sum((node) => node.self_ns),
    };
}

function wayTo(nodes: readonly PathNode[], wanted: PathNode | undefined): PathNode[] {
    const byId = new Map(nodes.map((node) => [node.id, node]));
    const way: PathNode[] = [];
    for (let node = wanted; node; node = node.parent_id === null ? undefined : byId.get(node.parent_id)) {
        way.unshift(node);
    }
    return way;
}

// Returns a TreeSource for a selection. The source loads all call paths at the first request. A
// request fails if the selection has more than ROWS paths.
export function selectedTree(session: string, chosen: Selection): TreeSource {
    let loading: Promise<PathNode[]> | null = null;
    const load = async () => {
        const limits = { rows: ROWS, ms: PART_MS };
        const answer = await askQuestion("web.call_tree", valuesOf(session, chosen), limits);
        if (answer.truncated) {
            throw new Error(`The selection has more than ${ROWS} call paths. Select less time or fewer functions.`);
        }
        return nodesOf(rowsOf<TreeRow>(answer));
    };
    return async (asked) => {
        const nodes = await (loading ??= load());
        const hottest = (a: PathNode, b: PathNode) => b.known_ns - a.known_ns;
        const wanted = asked.focus
            ? nodes.find((node) => node.id === asked.focus)
            : nodes.filter((node) => node.function_id === asked.function).sort(hottest)[0];
        const isFocused = asked.focus !== undefined || asked.function !== undefined;
        if (isFocused && !wanted) {
            throw new Error("The selection does not contain this call path.");
        }
        const parent = wanted?.id ?? asked.parent ?? null;
        const offset = asked.offset ?? 0;
        const children = nodes.filter((node) => node.parent_id === parent).sort(hottest);
        return {
            session_ns: nodes.reduce((sum, node) => sum + (node.parent_id === null ? node.known_ns : 0), 0),
            items: children.slice(offset, offset + asked.limit),
            rest: sumOf(children.slice(offset + asked.limit)),
            ...(isFocused ? { focus: wayTo(nodes, wanted) } : {}),
        };
    };
}
