// The visible call tree: which paths are loaded, which are open, and the order of the rows.
import { api, type PathNode, type TreePage } from "../api";

// Loads call paths: the children of `parent`, or the ancestors and the children of `focus` or of
// the hottest path of `function`. Without these it loads the roots.
export type TreeSource = (asked: {
    parent?: string | undefined;
    focus?: string;
    function?: string;
    limit: number;
    offset?: number;
}) => Promise<TreePage>;

export function storedTree(session: string): TreeSource {
    return (asked) => api.callTree(session, asked);
}

export const FIRST_CHILDREN = 12;
export const MORE_CHILDREN = 100;

interface Children {
    nodes: PathNode[];
    rest: TreePage["rest"]; // sum of the paths that are not loaded, the smallest ones
    partial: boolean; // true if only the way to a focused path is loaded; its siblings are not counted
}

export interface TreeRow {
    key: string;
    level: number;
    parent: string; // path id; "" for roots
    node: PathNode | null; // null for the "n more" row of `parent`
    open: boolean;
    rest: TreePage["rest"] | null;
    position: number;
    setSize: number;
}

export class TreeModel {
    sessionNs = 0;
    private readonly children = new Map<string, Children>();
    private readonly opened = new Set<string>();

    constructor(private readonly pages: TreeSource) {}

    async loadRoots(): Promise<void> {
        await this.load("", FIRST_CHILDREN);
    }

    // Opens all ancestors of a path (or of a function's hottest path). Returns the id of that path.
    async loadFocus(target: { focus: string } | { function: string }): Promise<string> {
        const page = await this.pages({ ...target, limit: FIRST_CHILDREN });
        const way = page.focus ?? [];
        let parent = "";
        for (const node of way) {
            this.children.set(parent, {
                nodes: [node],
                rest: { paths: 0, calls: 0, known_ns: 0, self_ns: 0 },
                partial: true,
            });
            this.opened.add(parent);
            parent = node.id;
        }
        this.sessionNs = page.session_ns;
        this.children.set(parent, { nodes: page.items, rest: page.rest, partial: false });
        return parent;
    }

    // Loads the next children of a path. If only the way to a focused path is loaded, loads all its
    // siblings.
    async loadMore(parent: string): Promise<void> {
        const known = this.children.get(parent);
        if (!known || known.partial) {
            await this.load(parent, MORE_CHILDREN);
            return;
        }
        const page = await this.pages({
            parent: parent || undefined,
            limit: MORE_CHILDREN,
            offset: known.nodes.length,
        });
        const seen = new Set(known.nodes.map((node) => node.id));
        known.nodes.push(...page.items.filter((node) => !seen.has(node.id)));
        known.rest = page.rest;
    }

    // Reloads all open paths, each with as many children as before.
    async refresh(): Promise<void> {
        for (const [parent, known] of [...this.children]) {
            const isShown = parent === "" || this.opened.has(parent);
            if (isShown && !known.partial) {
                await this.load(parent, Math.max(FIRST_CHILDREN, known.nodes.length));
            }
        }
    }

    async open(node: PathNode): Promise<void> {
        if (node.child_count === 0) {
            return;
        }
        if (!this.children.has(node.id)) {
            await this.load(node.id, FIRST_CHILDREN);
        }
        this.opened.add(node.id);
    }

    close(node: PathNode): void {
        this.opened.delete(node.id);
    }

    isOpen(id: string): boolean {
        return this.opened.has(id);
    }

    hottestChild(id: string): PathNode | undefined {
        return this.children.get(id)?.nodes[0];
    }

    rows(): TreeRow[] {
        const rows: TreeRow[] = [];
        // An explicit stack, because paths may be deeper than the engine's call stack.
        const pending: TreeRow[] = this.rowsBelow("", 1).reverse();
        for (let row = pending.pop(); row; row = pending.pop()) {
            rows.push(row);
            if (row.open && row.node) {
                pending.push(...this.rowsBelow(row.node.id, row.level + 1).reverse());
            }
        }
        return rows;
    }

    // Loads the first `count` children of a path, in pages of at most MORE_CHILDREN. New calls may
    // reorder the children between two pages; the map keeps each child once.
    private async load(parent: string, count: number): Promise<void> {
        const nodes = new Map<string, PathNode>();
        let offset = 0;
        let page: TreePage;
        do {
            const limit = Math.min(MORE_CHILDREN, count - offset);
            page = await this.pages({ parent: parent || undefined, limit, offset });
            page.items.forEach((node) => nodes.set(node.id, node));
            offset += page.items.length;
        } while (offset < count && page.items.length > 0 && page.rest.paths > 0);
        this.sessionNs = page.session_ns;
        this.children.set(parent, { nodes: [...nodes.values()], rest: page.rest, partial: false });
    }

    private rowsBelow(parent: string, level: number): TreeRow[] {
        const list = this.children.get(parent);
        if (!list) {
            return [];
        }
        const more = list.partial || list.rest.paths > 0;
        const setSize = list.nodes.length + (more ? 1 : 0);
        const rows: TreeRow[] = list.nodes.map((node, index) => ({
            key: node.id,
            level,
            parent,
            node,
            open: this.opened.has(node.id),
            rest: null,
            position: index + 1,
            setSize,
        }));
        if (more) {
            const rest = list.partial ? null : list.rest;
            const key = `more-${parent || "roots"}`;
            rows.push({ key, level, parent, node: null, open: false, rest, position: setSize, setSize });
        }
        return rows;
    }
}
