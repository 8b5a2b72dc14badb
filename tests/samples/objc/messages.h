#ifndef SJ_TESTS_SAMPLES_OBJC_MESSAGES_H
#define SJ_TESTS_SAMPLES_OBJC_MESSAGES_H

/* send_messages returns the number of checks that failed. One hooked round of its messages makes
 * SEND_MESSAGES_CALLS recorded calls: 1 many, 31 + 4 recurse:, 5 big:, 1 each of mixed:, triple:,
 * conjugate:, sum: and jump; what is forwarded is no method of the class. */
enum { SEND_MESSAGES_CALLS = 1 + 35 + 5 + 5, SEND_MESSAGES_ROUNDS = 3, SEND_MESSAGES_UNWINDS = 7 };

int send_messages(void (*hook)(void), void (*unhook)(void));

#endif
