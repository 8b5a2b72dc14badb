/* Turns the settings of direct mode into checked options of a recording. */
#ifndef SJ_AGENT_DIRECT_OPTIONS_H
#define SJ_AGENT_DIRECT_OPTIONS_H

#include "agent/direct/settings.h"
#include "agent/recording/recording.h"

/* Reads everything that the settings name. `options` borrows `policy` and the texts of `settings`
 * and `arguments`. An error names the variable. Returns SJ_EINVAL, SJ_ENOTFOUND, or SJ_ELIMIT if
 * the settings are too long. Returns SJ_EUNSUPPORTED if the policy needs a recorder outside the
 * process. */
SJ_MUST_CHECK sj_status sj_direct_options(const sj_direct_settings *settings, char **arguments,
                                          sj_policy *policy, sj_recording_options *options,
                                          sj_error *error);

/* Returns the folder in which recordings stay (SOJOURN_DIRECT=file:///FOLDER); NULL if they are
 * sent. */
const char *sj_direct_folder(const sj_direct_settings *settings);

#endif
