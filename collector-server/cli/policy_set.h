/* The part of `sojourn policy` that controls a running recording. */
#ifndef SJ_COLLECTOR_SERVER_CLI_POLICY_SET_H
#define SJ_COLLECTOR_SERVER_CLI_POLICY_SET_H

/* Runs `policy set [OPTIONS] PID`; the arguments begin with "set". Returns the exit code. */
int sj_policy_set_run(int argc, char **argv);

/* Prints the policy document that the recording of a process uses. `pid` is the process's decimal
 * number, as text. Returns the exit code. */
int sj_policy_show_running(const char *pid);

#endif
