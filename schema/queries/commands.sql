-- title: Commands
-- question: What was asked of which device, by whom, and what became of it?
-- parameter: device = * | its name, * and ? match any letters
-- parameter: limit = 100 | how many, the newest
-- column: command_id | number of the command in its lab
-- column: device | name of the device
-- column: kind | kind of the command
-- column: state | queued, sent, done, failed, timed_out
-- column: requested_by | who asked
-- column: created_realtime_ns | when, ns since the Unix epoch
-- column: finished_realtime_ns | when it ended; NULL: it has not
-- column: arguments | JSON object
-- column: result | the device's words
-- example: sojourn sql --query commands --param device='lab-*'
SELECT c.command_id, d.name AS device, c.kind, c.state, c.requested_by, c.created_realtime_ns,
       c.finished_realtime_ns, c.arguments, c.result
FROM commands AS c JOIN devices AS d USING (device_id)
WHERE d.name GLOB :device
ORDER BY c.created_realtime_ns DESC, c.command_id DESC
LIMIT :limit
