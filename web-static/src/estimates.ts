// Tells which times of single calls are estimates. Calls that were counted without a clock have
// estimated times (`sojourn record --clock adaptive`).

const UNTIMED = 16; // SJ_CALL_UNTIMED; a call is not exact if any lower bit is set

export function isUntimed(flags: number): boolean {
    return (flags & UNTIMED) !== 0;
}

// True if calls were lost around the call, or if its thread waited for the recorder.
export function isDoubtful(flags: number): boolean {
    return (flags & (UNTIMED - 1)) !== 0;
}
