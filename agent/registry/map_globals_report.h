/* Reports the globals of a map file, so that queries find them by module. */
#ifndef SJ_AGENT_REGISTRY_MAP_GLOBALS_REPORT_H
#define SJ_AGENT_REGISTRY_MAP_GLOBALS_REPORT_H

#include "agent/session/frame_writer.h"

/* Sends the globals in the map file of a program, as reports of the monitor "map" about module
 * number `module`. If the map file cannot be read any longer, sends a report of that error. Returns
 * SJ_ENOMEM, or errors of sj_frame_writer_report. */
SJ_MUST_CHECK sj_status sj_map_globals_report(sj_frame_writer *writer, const char *program,
                                              const char *map_file, uint32_t module,
                                              uint64_t now_ticks);

#endif
