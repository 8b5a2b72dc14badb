// Times that are estimates: of calls that were counted without a clock (`sojourn record --clock adaptive`).

const UNTIMED = 16; // SJ_CALL_UNTIMED; the bits below are what makes a call not exact

export function isUntimed(flags: number): boolean {
    return (flags & UNTIMED) !== 0;
}

// isDoubtful: calls were lost around it, or its thread waited for the recorder.
export function isDoubtful(flags: number): boolean {
    return (flags & (UNTIMED - 1)) !== 0;
}

function isSql(column: string, fn: string, session: string): string {
    return `EXISTS (SELECT 1 FROM function_estimates u WHERE u.session_id = ${session} AND u.function_id = ${fn}
         AND u.${column})`;
}

// estimateSql is a column of function `fn` of a session: whether its sums and quantiles are estimates.
export function estimateSql(fn: string, session = ":session"): string {
    return `${isSql("is_estimate", fn, session)} AS is_estimate`;
}

// selfEstimateSql is the same of its self time, which is one, too, where the function calls counted ones.
export function selfEstimateSql(fn: string, session = ":session", column = "is_self_estimate"): string {
    return `${isSql("is_self_estimate", fn, session)} AS ${column}`;
}

export function estimatesSql(fn: string, session = ":session"): string {
    return `${estimateSql(fn, session)},
       ${selfEstimateSql(fn, session)}`;
}

// selfUntimedSql is the same of a single call of `fn`, by its `flags`: not of each call that was timed is it known
// whether it made counted ones, so that all of a function are marked that did.
export function selfUntimedSql(flags: string, fn: string, session = ":session"): string {
    return `(${flags} & ${UNTIMED}) <> 0 OR ${isSql("calls_counted", fn, session)} AS is_self_estimate`;
}

export function anySelfUntimedSql(flags: string, fn: string, session: string): string {
    return `sum((${flags} & ${UNTIMED}) <> 0) > 0 OR ${isSql("calls_counted", fn, session)} AS is_self_estimate`;
}

// untimedSql is that of all times of single calls; of several, whether any of them is.
export function untimedSql(flags: string): string {
    return `(${flags} & ${UNTIMED}) <> 0 AS is_estimate`;
}

export function anyUntimedSql(flags: string): string {
    return `sum((${flags} & ${UNTIMED}) <> 0) > 0 AS is_estimate`; // no max(): that would choose the row of other columns
}
