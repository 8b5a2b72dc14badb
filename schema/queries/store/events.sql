-- Stores what happened in a session beside its calls.

-- name: gap_add
-- bind: stream_id optional, thread_number optional, block_id optional, number optional, reason text
-- bind: calls count, events count
INSERT OR IGNORE INTO gaps (session_id, stream_id, thread_number, block_id, number, reason, calls, events,
    start_ns, end_ns)
VALUES (:session_id, :stream_id, :thread_number, :block_id, :number, :reason, :calls, :events, :start_ns,
    :end_ns)

-- name: value_add
-- bind: kind text, rule text, note text
INSERT OR IGNORE INTO arguments (session_id, call_id, position, kind, rule, value, note)
VALUES (:session_id, :call_id, :position, :kind, :rule, :value, :note)

-- name: cost_add
INSERT OR IGNORE INTO call_costs (session_id, call_id, function_id, is_nested, cpu_ns, cpu_self_ns,
    allocations, allocated_bytes, frees, freed_bytes, allocations_self, allocated_self_bytes, frees_self,
    freed_self_bytes)
VALUES (:session_id, :call_id, :function_id, :is_nested, :cpu_ns, :cpu_self_ns, :allocations,
    :allocated_bytes, :frees, :freed_bytes, :allocations_self, :allocated_self_bytes, :frees_self,
    :freed_self_bytes)

-- name: mark_add
-- bind: number count, name text, thread_number count, source text
INSERT OR IGNORE INTO marks (session_id, number, name, is_end, at_ns, thread_number, source)
VALUES (:session_id, :number, :name, :is_end, :at_ns, :thread_number, :source)

-- name: clock_add
-- bind: ticks count, boot_id text, monotonic_ns count, boottime_ns count, realtime_ns count
-- bind: uncertainty_ns count
INSERT OR IGNORE INTO clock_pairs
VALUES (:session_id, :ticks, :boot_id, :monotonic_ns, :boottime_ns, :realtime_ns, :uncertainty_ns)

-- name: policy_add
-- bind: number count, name text, mode text, document text, not_applied text
INSERT INTO policies (session_id, number, name, version, mode, budget_ppm, document, not_applied, applied_ns)
VALUES (:session_id, :number, :name, :version, :mode, :budget_ppm, :document, :not_applied, :applied_ns)
ON CONFLICT DO UPDATE SET not_applied = excluded.not_applied

-- name: profile_add
-- bind: number count, calls count, events count, bytes count
INSERT OR IGNORE INTO profiles (session_id, number, start_ns, end_ns, calls, events, bytes)
VALUES (:session_id, :number, :start_ns, :end_ns, :calls, :events, :bytes)

-- name: decision_add
-- bind: number count, process_number count, function_id optional, what text, reason text, calls count
-- bind: total_calls count
INSERT OR IGNORE INTO decisions (session_id, number, at_ns, process_number, function_id, what, reason, calls,
    total_calls, overhead_ppm, budget_ppm)
VALUES (:session_id, :number, :at_ns, :process_number, :function_id, :what, :reason, :calls, :total_calls,
    :overhead_ppm, :budget_ppm)

-- name: trigger_add
-- bind: number count, thread_number optional, event text, subject text, actions text, suppressed count
-- bind: child_session_uuid optional_blob
INSERT OR IGNORE INTO triggers (session_id, number, at_ns, thread_number, place, event, subject, value,
    actions, suppressed, child_session_uuid)
VALUES (:session_id, :number, :at_ns, :thread_number, :place, :event, :subject, :value, :actions,
    :suppressed, :child_session_uuid)

-- name: stack_add
-- bind: number count, taken count, process_number count, thread_name text, cause text, function text
-- bind: module text, offset count
INSERT OR IGNORE INTO stacks (session_id, number, level, taken, at_ns, process_number, tid, thread_name,
    cause, function, module, offset, is_cut)
VALUES (:session_id, :number, :level, :taken, :at_ns, :process_number, :tid, :thread_name, :cause, :function,
    :module, :offset, :is_cut)

-- name: report_add
-- bind: number count, process_number optional, thread_number optional, monitor text, kind text
-- bind: payload device_text
INSERT OR IGNORE INTO reports (session_id, number, at_ns, process_number, thread_number, monitor, kind,
    payload)
VALUES (:session_id, :number, :at_ns, :process_number, :thread_number, :monitor, :kind, :payload)

-- name: filtered_frame_add
-- bind: number count
INSERT OR IGNORE INTO filtered_frames (session_id, number)
VALUES (:session_id, :number)

-- name: filtered_add
-- bind: function_id optional, reason text, calls count
INSERT INTO filtered_calls (session_id, function_id, reason, calls, total_ns)
VALUES (:session_id, :function_id, :reason, :calls, :total_ns)
ON CONFLICT (session_id, function_id, reason) DO UPDATE SET calls = calls + excluded.calls,
    total_ns = total_ns + excluded.total_ns
