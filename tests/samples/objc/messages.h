#ifndef SJ_TESTS_SAMPLES_OBJC_MESSAGES_H
#define SJ_TESTS_SAMPLES_OBJC_MESSAGES_H

/* Returns the number of failed checks. One hooked round of messages makes SEND_MESSAGES_CALLS
 * recorded calls: 1 many, 31 + 4 recurse:, 5 big:, 1 each of mixed:, triple:, conjugate:, sum: and
 * jump. A forwarded message does not count: the class has no method for it. */
enum { SEND_MESSAGES_CALLS = 1 + 35 + 5 + 5, SEND_MESSAGES_ROUNDS = 3, SEND_MESSAGES_UNWINDS = 7 };

int send_messages(void (*hook)(void), void (*unhook)(void));

#endif
