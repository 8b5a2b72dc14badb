-- Sojourn store, version 40: functions without a name are matched by their code, or in one build.

ALTER TABLE functions ADD COLUMN fingerprint INTEGER; -- of the code, wherever it lies; NULL: it has a name, or is not known

-- Addresses of two builds have nothing to do with each other: 36 bits of the build-id, and the offset.
UPDATE functions SET symbol_key = offset + (SELECT
    ((instr('0123456789ABCDEF', substr(hex(build_id), 1, 1)) - 1) << 56) +
    ((instr('0123456789ABCDEF', substr(hex(build_id), 2, 1)) - 1) << 52) +
    ((instr('0123456789ABCDEF', substr(hex(build_id), 3, 1)) - 1) << 48) +
    ((instr('0123456789ABCDEF', substr(hex(build_id), 4, 1)) - 1) << 44) +
    ((instr('0123456789ABCDEF', substr(hex(build_id), 5, 1)) - 1) << 40) +
    ((instr('0123456789ABCDEF', substr(hex(build_id), 6, 1)) - 1) << 36) +
    ((instr('0123456789ABCDEF', substr(hex(build_id), 7, 1)) - 1) << 32) +
    ((instr('0123456789ABCDEF', substr(hex(build_id), 8, 1)) - 1) << 28) +
    ((instr('0123456789ABCDEF', substr(hex(build_id), 9, 1)) - 1) << 24)
    FROM modules WHERE modules.module_id = functions.module_id)
WHERE symbol = '';
