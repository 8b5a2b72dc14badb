#include "agent/inproc/link/conversation.h"

#include "agent/abi/agent_state.h"
#include "agent/inproc/recorder/sys.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

char **sj_program_environment;

static char arena_name[sizeof(((sj_link_hello *)NULL)->arena_name)];
static _Atomic uint32_t turn; /* tid of the thread that talks; 0: none */

bool sj_conversation_begin_within(uint64_t wait_ns)
{
    const uint32_t self = sj_sys_tid();
    uint64_t start_ns = 0; /* 0: not read yet */
    for (;;) {
        uint32_t owner = 0;
        if (atomic_compare_exchange_strong(&turn, &owner, self)) {
            return true;
        }
        start_ns = start_ns != 0 ? start_ns : sj_sys_clock_ns(CLOCK_MONOTONIC);
        if (owner == self || sj_sys_clock_ns(CLOCK_MONOTONIC) - start_ns >= wait_ns) {
            return false;
        }
        (void)SJ_SYS(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
}

bool sj_conversation_begin(void)
{
    return sj_conversation_begin_within(UINT64_MAX);
}

void sj_conversation_end(void)
{
    atomic_store(&turn, 0);
}

const char *sj_conversation_name_arena(void)
{
    static const char suffix[] = ".arena";
    size_t used = sj_link_append_number(arena_name, 0, sj_sys_pid());
    arena_name[used++] = '.';
    used = sj_link_append_number(arena_name, used, sj_sys_clock_ns(CLOCK_MONOTONIC));
    memcpy(arena_name + used, suffix, sizeof(suffix));
    return arena_name;
}

const char *sj_conversation_zombies_name(void)
{
    static const char suffix[] = ".zombies";
    static char name[sizeof(arena_name) + sizeof(suffix)];
    const char *end = strrchr(arena_name, '.');
    const size_t used = end != NULL ? (size_t)(end - arena_name) : 0;
    memcpy(name, arena_name, used);
    memcpy(name + used, suffix, sizeof(suffix));
    return name;
}

static sj_status greet(sj_link *link, sj_link_occasion occasion)
{
    sj_link_hello hello = {.pid = sj_sys_pid(),
                           .tid = sj_sys_tid(),
                           .parent_pid = sj_sys_parent_pid(),
                           .occasion = occasion};
    memcpy(hello.arena_name, arena_name, sizeof(arena_name));
    SJ_TRY(sj_link_open(link, sojourn_agent_state.runtime_directory));
    memcpy(sj_link_payload(link), &hello, sizeof(hello));
    return sj_link_send(link, SJ_LINK_HELLO, sizeof(hello));
}

static sj_status be_welcomed(sj_link *link, sj_link_welcome *welcome)
{
    SJ_TRY(sj_link_receive(link));
    if (link->packet.type != SJ_LINK_WELCOME || link->packet.payload_bytes != sizeof(*welcome)) {
        return SJ_EPERM;
    }
    memcpy(welcome, link->payload, sizeof(*welcome));
    link->runtimes = welcome->runtimes;
    return SJ_OK;
}

sj_status sj_conversation_open(sj_link *link, sj_link_occasion occasion, sj_link_welcome *welcome)
{
    SJ_TRY(greet(link, occasion));
    return be_welcomed(link, welcome);
}

sj_status sj_conversation_open_again(sj_link *link)
{
    sj_link_welcome welcome;
    return sj_conversation_open(link, SJ_OCCASION_DLOPEN, &welcome);
}

sj_status sj_conversation_finish(sj_link *link)
{
    SJ_TRY(sj_link_send(link, SJ_LINK_DONE, 0));
    SJ_TRY(sj_link_receive(link));
    return link->packet.type == SJ_LINK_DONE ? SJ_OK : SJ_ECORRUPT;
}

bool sj_conversation_ask(sj_status (*ask_one)(sj_link *link, void *question), void *question)
{
    sj_link link = {.socket = -1};
    if (!sj_conversation_begin()) {
        return false;
    }
    sj_status status = sj_conversation_open_again(&link);
    if (status == SJ_OK) {
        status = ask_one(&link, question);
    }
    if (status == SJ_OK) {
        status = sj_conversation_finish(&link);
    }
    sj_link_close(&link);
    sj_conversation_end();
    return status == SJ_OK;
}

/* Sends the question right after HELLO, so that the thread sleeps once. */
static sj_status talk_at_once(sj_link *link, const sj_conversation_question *question)
{
    sj_link_welcome welcome;
    SJ_TRY(greet(link, SJ_OCCASION_DLOPEN));
    SJ_TRY(question->send(link, question->context));
    SJ_TRY(be_welcomed(link, &welcome));
    SJ_TRY(sj_link_receive(link));
    return question->take(link, question->context);
}

bool sj_conversation_ask_at_once(const sj_conversation_question *question)
{
    sj_link link = {.socket = -1};
    if (!sj_conversation_begin()) {
        return false;
    }
    const sj_status status = talk_at_once(&link, question);
    sj_link_close(&link);
    sj_conversation_end();
    return status == SJ_OK;
}

typedef struct lines_report {
    const uint32_t *words;
    sj_link_lines message;
} lines_report;

static sj_status send_lines(sj_link *link, void *context)
{
    const lines_report *lines = context;
    const uint32_t bytes = lines->message.word_count * (uint32_t)sizeof(uint32_t);
    memcpy(sj_link_payload(link), &lines->message, sizeof(lines->message));
    memcpy(sj_link_payload(link) + sizeof(lines->message), lines->words, bytes);
    return sj_link_send(link, SJ_LINK_LINES, (uint32_t)sizeof(lines->message) + bytes);
}

void sj_conversation_report_lines(const uint32_t *words, uint32_t count, bool is_last)
{
    lines_report lines = {.words = words,
                          .message = {.word_count = count, .is_last = is_last ? 1 : 0}};
    (void)sj_conversation_ask(send_lines, &lines);
}
