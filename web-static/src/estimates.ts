// SQL columns that tell whether times are estimates. Calls that were counted without a clock have
// estimated times (`sojourn record --clock adaptive`).

const UNTIMED = 16; // SJ_CALL_UNTIMED; a call is not exact if any lower bit is set

export function isUntimed(flags: number): boolean {
    return (flags & UNTIMED) !== 0;
}

// True if calls were lost around the call, or if its thread waited for the recorder.
export function isDoubtful(flags: number): boolean {
    return (flags & (UNTIMED - 1)) !== 0;
}

function isSql(column: string, fn: string, session: string): string {
    return `EXISTS (SELECT 1 FROM function_estimates u WHERE u.session_id = ${session} AND u.function_id = ${fn}
         AND u.${column})`;
}

// Returns a column for function `fn` of a session: 1 if its sums and percentiles are estimates.
export function estimateSql(fn: string, session = ":session"): string {
    return `${isSql("is_estimate", fn, session)} AS is_estimate`;
}

// Returns a column for function `fn`: 1 if its self time is an estimate. Callers of untimed
// functions have estimates, too.
export function selfEstimateSql(fn: string, session = ":session", column = "is_self_estimate"): string {
    return `${isSql("is_self_estimate", fn, session)} AS ${column}`;
}

export function estimatesSql(fn: string, session = ":session"): string {
    return `${estimateSql(fn, session)},
       ${selfEstimateSql(fn, session)}`;
}

// Returns a column for a single call of `fn`: 1 if its self time is an estimate. A timed call does
// not record whether it made untimed calls. So all calls are marked if the function made any.
export function selfUntimedSql(flags: string, fn: string, session = ":session"): string {
    return `(${flags} & ${UNTIMED}) <> 0 OR ${isSql("calls_counted", fn, session)} AS is_self_estimate`;
}

// Like selfUntimedSql, for a group of calls: 1 if the self time of any of them is an estimate.
export function anySelfUntimedSql(flags: string, fn: string, session: string): string {
    return `sum((${flags} & ${UNTIMED}) <> 0) > 0 OR ${isSql("calls_counted", fn, session)} AS is_self_estimate`;
}

// Returns a column for a single call: 1 if its times are estimates.
export function untimedSql(flags: string): string {
    return `(${flags} & ${UNTIMED}) <> 0 AS is_estimate`;
}

// Like untimedSql, for a group of calls: 1 if the time of any of them is an estimate.
export function anyUntimedSql(flags: string): string {
    return `sum((${flags} & ${UNTIMED}) <> 0) > 0 AS is_estimate`; // not max(): SQLite would then take other columns from the row with the maximum
}
