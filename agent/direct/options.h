/* The settings of direct mode as options of a recording, checked. */
#ifndef SJ_AGENT_DIRECT_OPTIONS_H
#define SJ_AGENT_DIRECT_OPTIONS_H

#include "agent/direct/settings.h"
#include "agent/recording/recording.h"

/* sj_direct_options reads everything that the settings name; `policy` and what `settings` and
 * `arguments` hold are borrowed by `options`. An error names the variable. SJ_EINVAL, SJ_ENOTFOUND,
 * SJ_EUNSUPPORTED: the policy asks for what only a recorder outside of the process can do. */
SJ_MUST_CHECK sj_status sj_direct_options(const sj_direct_settings *settings, char **arguments,
                                          sj_policy *policy, sj_recording_options *options,
                                          sj_error *error);

/* sj_direct_folder returns the folder that recordings stay in (SOJOURN_DIRECT=file:///FOLDER);
 * NULL: they are sent. */
const char *sj_direct_folder(const sj_direct_settings *settings);

#endif
