import type { Overview } from "./api";
import { counted, duration } from "./format";

// Threads wait where the recorder has no room for their calls: that costs time, not calls.
export function waitsText({ counts }: Pick<Overview, "counts">): string {
    return counts.waits > 0 ? ` Threads waited for the recorder ${counted(counts.waits, "time")}, ${duration(counts.waits_ns)} in all.` : "";
}
