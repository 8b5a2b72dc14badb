/* Checks signatures of values against the debug data of the program. A rule such as 'send(n:int)'
 * reads the first argument, whatever its name in the program is. */
#ifndef SJ_COLLECTOR_SERVER_CLI_SIGNATURE_CHECK_H
#define SJ_COLLECTOR_SERVER_CLI_SIGNATURE_CHECK_H

/* Prints a sentence to standard error for each signature that disagrees with the debug data. Such a
 * signature names an argument of a function of the ELF file `binary` but reads it from another
 * place. Checks neither patterns nor calls into libraries. Reads the symbols and the DWARF of the
 * file only if such a rule exists. Blocks. What cannot be read is ignored. */
void sj_signature_check(const char *document, const char *binary);

#endif
