// Chains of calls with a weight each, merged by what they begin with: trees for flame graphs.
import type { Frame } from "../widgets/flame";

export interface Link {
    id: number; // function
    name: string;
    isEstimate: boolean; // of a chain that ends here
}

export interface Chain {
    links: Link[]; // from the root
    weight: number;
    calls: number;
    goesOn: boolean; // behind its last link: it is cut there
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

// framesOf lays merged chains out, heaviest first; `say` makes the line about a frame.
export function framesOf(
    chains: readonly Chain[],
    say: (node: { name: string; weight: number; calls: number; isEstimate: boolean }) => string,
): ChainFrame[] {
    const roots = new Map<number, Node>();
    chains.forEach((chain) => add(roots, chain));
    const frames: ChainFrame[] = [];
    const lay = (level: Map<number, Node>, left: number, row: number, parent: string) => {
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
            lay(node.below, left, row + 1, key);
            left += weight;
        }
    };
    lay(roots, 0, 0, "");
    return frames;
}
