// Merges weighted call chains that begin with the same functions into trees for flame graphs.
import type { Frame } from "../widgets/flame";

export interface Link {
    id: number; // function_id
    name: string;
    isEstimate: boolean; // true if the weight of a chain that ends here is an estimate
}

export interface Chain {
    links: Link[]; // the root first
    weight: number;
    calls: number;
    isCut: boolean; // true if the chain was cut after its last link
}

export interface ChainFrame extends Frame {
    weight: number;
    calls: number;
    function: number;
    isEstimate: boolean;
}

interface Node {
    link: Link;
    weight: number;
    calls: number;
    below: Map<number, Node>;
}

// Adds a chain to the trees whose roots are in `level`.
function add(level: Map<number, Node>, chain: Chain): void {
    let at = level;
    for (const link of chain.links) {
        const node = at.get(link.id) ?? { link, weight: 0, calls: 0, below: new Map() };
        at.set(link.id, node);
        node.weight += chain.weight;
        node.calls += chain.calls;
        at = node.below;
    }
}

// Places merged chains as frames, the heaviest first. `say` writes the tooltip of a frame.
export function framesOf(
    chains: readonly Chain[],
    say: (node: { name: string; weight: number; calls: number; isEstimate: boolean }) => string,
): ChainFrame[] {
    const roots = new Map<number, Node>();
    chains.forEach((chain) => add(roots, chain));
    const frames: ChainFrame[] = [];
    const place = (level: Map<number, Node>, left: number, row: number, parent: string) => {
        const nodes = [...level.values()].sort((a, b) => b.weight - a.weight);
        for (const node of nodes) {
            const key = `${parent}/${node.link.id}`;
            const { weight, calls } = node;
            const { name, isEstimate } = node.link;
            frames.push({
                key,
                parent,
                left,
                right: left + weight,
                row,
                name,
                weight,
                calls,
                function: node.link.id,
                isEstimate,
                hint: say({ name, weight, calls, isEstimate }),
            });
            place(node.below, left, row + 1, key);
            left += weight;
        }
    };
    place(roots, 0, 0, "");
    return frames;
}
