/* Reads source lines of the methods of an assembly: the sequence points of its symbol file. That is
 * a Mono symbol file (NAME.exe.mdb) or a portable PDB (NAME.pdb) beside the assembly, or a portable
 * PDB inside it.
 *
 * The bytes are not trusted: a damaged file gives wrong or fewer lines, never wrong memory.
 * Thread-safe: there is no state. */
#ifndef SJ_AGENT_RUNTIMES_MONO_SOURCE_LINES_H
#define SJ_AGENT_RUNTIMES_MONO_SOURCE_LINES_H

#include "agent/runtimes/runtime.h"

enum { SJ_SOURCE_FILE_BYTES = 4096 };

/* Finds the symbol file of the assembly at `path` whose build has this module id, and passes its
 * sequence points to `sink`. Returns SJ_ENOTFOUND if there is none of this build. Other errors are
 * those of read_container. Blocking: reads files. */
SJ_MUST_CHECK sj_status sj_mono_read_lines(const char *path, sj_slice id,
                                           sj_container_line_sink sink, void *context);

/* Passes the sequence points in the bytes of a Mono symbol file to `sink`. Returns SJ_ECORRUPT if
 * it is not such a file or has an unknown version. Returns SJ_EVERSION if it belongs to another
 * build, or returns what the sink returned. */
SJ_MUST_CHECK sj_status sj_mdb_read(sj_slice file, sj_slice id, sj_container_line_sink sink,
                                    void *context);

/* Does the same for a portable PDB. Its id is that of the assembly's debug directory
 * (sj_assembly_pdb_id). Also returns SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_portable_pdb_read(sj_slice file, sj_slice id,
                                             sj_container_line_sink sink, void *context);

/* Does the same for the portable PDB inside an assembly's own file. Returns SJ_ENOTFOUND if there
 * is none. */
SJ_MUST_CHECK sj_status sj_embedded_pdb_read(sj_slice file, sj_slice id,
                                             sj_container_line_sink sink, void *context);

#endif
