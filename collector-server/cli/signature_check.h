/* Checks the signatures of value rules against the debug data of the program. The reason: a rule
 * such as 'send(n:int)' reads the first argument, even if it has another name in the program. */
#ifndef SJ_COLLECTOR_SERVER_CLI_SIGNATURE_CHECK_H
#define SJ_COLLECTOR_SERVER_CLI_SIGNATURE_CHECK_H

/* Prints a warning to standard error for each signature that names an argument but reads another
 * one. `document` is the policy's JSON. The debug data of the ELF file `binary` say where each
 * named argument is. Skips rules with patterns and rules for calls into libraries. Reads the file
 * only if a rule remains. Blocks. Ignores errors. */
void sj_signature_check(const char *document, const char *binary);

#endif
