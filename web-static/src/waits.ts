import type { Overview } from "./api";
import { counted, duration } from "./format";

// Says how long threads waited because the recorder's memory was full. A wait costs time but does
// not lose calls.
export function waitsText({ counts }: Pick<Overview, "counts">): string {
    return counts.waits > 0 ? ` Threads waited for the recorder ${counted(counts.waits, "time")}, ${duration(counts.waits_ns)} in all.` : "";
}
