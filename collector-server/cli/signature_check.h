/* Signatures of values against the debug data of the program: a rule such as 'send(n:int)' is about
 * the first argument, whatever that is called there. */
#ifndef SJ_COLLECTOR_SERVER_CLI_SIGNATURE_CHECK_H
#define SJ_COLLECTOR_SERVER_CLI_SIGNATURE_CHECK_H

/* sj_signature_check prints a sentence to standard error for each signature of a policy's document
 * that names an argument of a function of the ELF file `binary` and takes it from another place
 * than debug data say; patterns and calls into libraries are not looked at. Reads the symbols and
 * the DWARF of the file, if there is such a rule. Blocks; what cannot be read is no mistake. */
void sj_signature_check(const char *document, const char *binary);

#endif
