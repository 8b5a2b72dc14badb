/* Design notes
 *
 * Text is written through /proc/PID/mem, page by page. The kernel makes private copies of exactly
 * the pages that change, and page protections stay unchanged. The writer may be killed between any
 * two pages; the kernel writes a page completely or not at all. So a short jump is written after
 * its island if the island lies in a later page. Pages are written upwards, because code that was
 * moved for an island is left by a jump before that island. Removals use the reverse sequence. A
 * patch that crosses a page boundary could be torn between its halves. Such a patch is written
 * separately, and attached processes have none (hooks.h).
 *
 * A thread that stands inside a window that is to be overwritten runs alone for a moment. Single
 * steps are not used: their flag would kill the thread if the tracer is killed. If a thread's
 * program counter is at one of our jumps that is to be removed, it is set to the jump's target.
 * That target stays mapped, and returns to text that is the same before and after. Contexts that a
 * signal handler has interrupted lie on stacks, where the kernel wrote them. They are moved in the
 * same way, or the group is refused. */
#include "agent/ptrace/text_patch.h"

#include "agent/abi/page.h"
#include "agent/host/clock.h"
#include "agent/ptrace/arch.h"
#include "proto/base/bisect.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    PAGE = SJ_PAGE_LEAST_BYTES, /* or the piece of a larger page */
    STACK_SCAN_BYTES = 64 * 1024,
    JUMPS_MAX = 4,
    RUN_NS = 20000, /* first run; later runs are longer */
    RUN_DOUBLINGS = 5,
    RUNS_MAX = 16,
    RUNS_IN_SYSCALL = 4,
    ROUNDS_MAX = 16
};

/* Time limit for moving all threads together. If there are fewer cores than runnable threads, they
 * wait for one. */
#define CLEAR_NS UINT64_C(300000000)

typedef struct patching {
    sj_tracee *target;
    sj_signal_returns returns;
    const sj_text_change *change;
    sj_text_patch *patches;
    size_t count;
    sj_text_patch_report *report;
    uint8_t *stack; /* STACK_SCAN_BYTES */
    uint64_t deadline_ns;
} patching;

static int compare(const void *left, const void *right)
{
    const sj_text_patch *a = left;
    const sj_text_patch *b = right;
    return a->address < b->address ? -1 : a->address > b->address;
}

static uint64_t page_of(uint64_t address)
{
    return address & ~(uint64_t)(PAGE - 1);
}

static uint64_t last_page(const sj_text_patch *patch)
{
    return page_of(patch->address + patch->bytes - 1);
}

/* Numbers the pages in ascending sequence of their addresses. Stores the place of each patch in the
 * copy. Returns the number of pages. */
static size_t place_patches(const sj_text_change *change)
{
    size_t pages = 0;
    uint64_t newest = 0; /* address of the page numbered last */
    for (size_t i = 0; i < change->count; i++) {
        const sj_text_patch *patch = &change->patches[i];
        const uint64_t page = page_of(patch->address);
        if (pages == 0 || page > newest) {
            newest = page;
            pages++;
        }
        /* If the previous patch crosses into the newest page, this patch may still begin in the
         * page before that one. */
        const size_t number = pages - 1 - (page < newest ? 1 : 0);
        change->places[i] = (uint32_t)(number * PAGE + (patch->address - page));
        if (last_page(patch) > newest) {
            newest = last_page(patch);
            pages++;
        }
    }
    return pages;
}

/* Fills the copy with the current text. Reads adjacent pages at once. */
static sj_status read_pages(const sj_tracee *target, const sj_text_change *change)
{
    uint64_t low = 0; /* the run of pages that is still to be read, and its place in the copy */
    uint64_t high = 0;
    size_t at = 0;
    for (size_t i = 0; i < change->count; i++) {
        const uint64_t page = page_of(change->patches[i].address);
        const uint64_t end = last_page(&change->patches[i]) + PAGE;
        if (high != 0 && page > high) {
            SJ_TRY(sj_tracee_read(target, low, change->pages + at, high - low));
        }
        if (high == 0 || page > high) {
            low = page;
            at = change->places[i] & ~(size_t)(PAGE - 1);
            high = end;
        }
        high = end > high ? end : high;
    }
    return high != 0 ? sj_tracee_read(target, low, change->pages + at, high - low) : SJ_OK;
}

sj_status sj_text_change_init(const sj_tracee *target, sj_text_patch *patches, size_t count,
                              sj_text_change *change)
{
    qsort(patches, count, sizeof(*patches), compare);
    *change = (sj_text_change){
        .patches = patches, .count = count, .places = malloc((count + 1) * sizeof(uint32_t))};
    if (change->places == NULL) {
        return SJ_ENOMEM;
    }
    change->page_count = place_patches(change);
    change->pages = malloc(change->page_count * PAGE + 1);
    return change->pages != NULL ? read_pages(target, change) : SJ_ENOMEM;
}

void sj_text_change_deinit(sj_text_change *change)
{
    free(change->patches);
    free(change->places);
    free(change->pages);
    *change = (sj_text_change){0};
}

static void refuse_group(patching *work, uint32_t group)
{
    for (size_t i = 0; i < work->count; i++) {
        if (work->patches[i].group == group && !work->patches[i].refused) {
            work->patches[i].refused = true;
            work->report->refused++;
        }
    }
}

/* Returns the patch whose window contains `pc`, or NULL. The window's first byte counts only for
 * removals. */
static sj_text_patch *find_window(const patching *work, uint64_t pc)
{
    const size_t low = SJ_BISECT(0, work->count, i, work->patches[i].address <= pc);
    /* Windows are at most SJ_TEXT_PATCH_BYTES long. One window may lie inside another (islands). */
    for (size_t i = low; i-- > 0 && pc - work->patches[i].address < SJ_TEXT_PATCH_BYTES;) {
        sj_text_patch *patch = &work->patches[i];
        const uint64_t inside = pc - patch->address;
        if (!patch->refused && inside < patch->window && (patch->is_removal || inside != 0)) {
            return patch;
        }
    }
    return NULL;
}

/* Follows our jumps from `*pc` and stores where they lead. Returns false if the thread is stuck in
 * a window. */
static bool follow_jumps(const patching *work, uint64_t *pc)
{
    for (uint32_t i = 0; i < JUMPS_MAX; i++) {
        const sj_text_patch *patch = find_window(work, *pc);
        if (patch == NULL) {
            return true;
        }
        if (!patch->is_removal || patch->address != *pc ||
            !sj_jump_follow(*pc, patch->expected, patch->bytes, pc)) {
            return false;
        }
    }
    return false;
}

/* If `*pc` is on one of our jumps that is to be removed, moves it to the jump's target. If it is in
 * a window whose instructions may be repeated, moves it to the start. Returns the patch that it is
 * stuck in, or NULL. */
static sj_text_patch *leave_jump(const patching *work, uint64_t *pc)
{
    sj_text_patch *patch = find_window(work, *pc);
    uint64_t to = *pc;
    if (patch != NULL && patch->repeats) {
        *pc = patch->address;
        return NULL;
    }
    if (patch == NULL || !patch->is_removal || !follow_jumps(work, &to)) {
        return patch;
    }
    *pc = to;
    return NULL;
}

/* Does the same for the contexts of this thread that signal handlers have interrupted. */
static sj_text_patch *leave_contexts(const patching *work, const sj_registers *state)
{
    const uint64_t low = sj_signal_context_start(work->target, state, &work->returns);
    const ssize_t got = pread(work->target->memory, work->stack, STACK_SCAN_BYTES, (off_t)low);
    sj_text_patch *stuck = NULL;
    for (ssize_t at = 0; at + (ssize_t)sizeof(uint64_t) <= got; at += (ssize_t)sizeof(uint64_t)) {
        uint64_t word;
        uint64_t pc_at = 0;
        uint64_t before = 0;
        bool is_shown;
        memcpy(&word, work->stack + at, sizeof(word));
        if (!sj_signal_is_frame(&work->returns, work->stack + at, (size_t)(got - at)) ||
            sj_signal_find_pc(work->target, &work->returns, word, low + (uint64_t)at, &pc_at,
                              &is_shown) != SJ_OK ||
            sj_tracee_read(work->target, pc_at, &before, sizeof(before)) != SJ_OK) {
            continue;
        }
        uint64_t pc = before;
        sj_text_patch *patch = leave_jump(work, &pc);
        if (pc != before && sj_tracee_write(work->target, pc_at, &pc, sizeof(pc)) != SJ_OK) {
            patch = find_window(work, before);
        }
        stuck = patch != NULL ? patch : stuck;
    }
    return stuck;
}

/* Moves a thread out of a window as far as changing its program counters can. Stores in `*stuck`
 * the patch that the thread is still in, or NULL. */
static sj_status find_obstacle(const patching *work, pid_t tid, sj_text_patch **stuck,
                               bool *in_syscall)
{
    sj_registers state;
    SJ_TRY(sj_registers_get(tid, &state));
    sj_text_patch *patch = find_window(work, state.pc);
    uint64_t pc = state.pc;
    *in_syscall = state.in_syscall;
    /* The program counter follows a system call that may be restarted. The system call instruction
     * is the same after the removal. */
    if (patch != NULL && patch->is_removal && state.in_syscall && patch->address == pc) {
        patch = NULL;
    } else if (patch != NULL) {
        patch = leave_jump(work, &pc);
    }
    if (pc != state.pc) {
        SJ_TRY(sj_registers_set_pc(tid, pc));
    }
    *stuck = patch != NULL ? patch : leave_contexts(work, &state);
    return SJ_OK;
}

/* Brings a thread out of all windows. Lets a thread that cannot be moved run for a moment. */
static sj_status move_thread(patching *work, size_t thread, bool *has_run)
{
    const pid_t tid = work->target->threads[thread].tid;
    for (uint32_t runs = 0;; runs++) {
        sj_text_patch *stuck = NULL;
        bool in_syscall = false;
        SJ_TRY(find_obstacle(work, tid, &stuck, &in_syscall));
        if (stuck == NULL) {
            return SJ_OK;
        }
        work->report->moved += runs == 0 ? 1 : 0;
        if (runs >= RUNS_MAX || sj_clock_ns(CLOCK_MONOTONIC) >= work->deadline_ns ||
            (in_syscall && runs >= RUNS_IN_SYSCALL)) {
            refuse_group(work, stuck->group);
            continue;
        }
        *has_run = true;
        const uint32_t shift = runs < RUN_DOUBLINGS ? runs : RUN_DOUBLINGS;
        const sj_status status = sj_tracee_run_on(work->target, thread, RUN_NS << shift);
        if (status != SJ_OK) {
            return status == SJ_ECLOSED && !work->target->replaced ? SJ_OK : status;
        }
    }
}

/* Moves all threads, and repeats this until no thread had to run: a running thread may create
 * others. */
static sj_status clear_windows(patching *work)
{
    for (uint32_t rounds = 0; rounds < ROUNDS_MAX; rounds++) {
        bool has_run = false;
        for (size_t i = 0; i < work->target->count; i++) {
            SJ_TRY(move_thread(work, i, &has_run));
        }
        if (!has_run) {
            return SJ_OK;
        }
        SJ_TRY(sj_tracee_stop_all(work->target, NULL));
    }
    return SJ_EAGAIN;
}

sj_status sj_text_change_clear(sj_tracee *target, const sj_signal_returns *returns,
                               sj_text_change *change, sj_text_patch_report *report)
{
    patching work = {.target = target,
                     .returns = *returns,
                     .change = change,
                     .patches = change->patches,
                     .count = change->count,
                     .report = report,
                     .stack = malloc(STACK_SCAN_BYTES),
                     .deadline_ns = sj_clock_ns(CLOCK_MONOTONIC) + CLEAR_NS};
    const sj_status status = work.stack != NULL ? clear_windows(&work) : SJ_ENOMEM;
    free(work.stack);
    return status;
}

/* The turns in which patches are written. Removals go from the last turn to the first. */
typedef enum turn {
    TURN_PAGES,    /* together with the other patches of the page */
    TURN_CROSSING, /* one at a time: the patch crosses a page boundary */
    TURN_LATE,     /* short jumps whose island is written after the jump's page */
    TURNS
} turn;

static turn turn_of(const sj_text_patch *patch)
{
    const uint8_t *jump = patch->is_removal ? patch->expected : patch->wanted;
    uint64_t to = 0;
    if (last_page(patch) != page_of(patch->address)) {
        return TURN_CROSSING;
    }
    /* An island is as long as a long jump. So a jump is late, too, if its island crosses the next
     * page boundary. */
    return patch->bytes < SJ_LONG_JUMP_BYTES &&
                   sj_jump_follow(patch->address, jump, patch->bytes, &to) &&
                   page_of(to + SJ_LONG_JUMP_BYTES - 1) > page_of(patch->address) &&
                   to - patch->address < PAGE
               ? TURN_LATE
               : TURN_PAGES;
}

static void check_text(patching *work)
{
    const uint32_t refused = work->report->refused;
    for (size_t i = 0; i < work->count; i++) {
        sj_text_patch *patch = &work->patches[i];
        const uint8_t *text = work->change->pages + work->change->places[i];
        patch->is_foreign = memcmp(text, patch->expected, patch->bytes) != 0 &&
                            memcmp(text, patch->wanted, patch->bytes) != 0;
        if (!patch->refused && patch->is_foreign) {
            refuse_group(work, patch->group);
        }
    }
    work->report->foreign += work->report->refused - refused;
}

/* The changed bytes of one page that are not written yet. Only this span is written. The rest of a
 * data page may change although all threads are stopped: asynchronous I/O or other processes write
 * to it. */
typedef struct changed_span {
    uint64_t address;
    size_t place; /* index of the span's first byte in `pages` */
    size_t bytes; /* 0: the span is empty */
} changed_span;

static sj_status write_span(const patching *work, const changed_span *span)
{
    return span->bytes == 0 ? SJ_OK
                            : sj_tracee_write(work->target, span->address,
                                              work->change->pages + span->place, span->bytes);
}

static void widen(changed_span *span, const sj_text_patch *patch, size_t place)
{
    const changed_span before = *span;
    const size_t end = place + patch->bytes;
    if (before.bytes == 0) {
        *span = (changed_span){patch->address, place, patch->bytes};
        return;
    }
    const size_t before_end = before.place + before.bytes;
    if (place < before.place) {
        span->address = patch->address;
        span->place = place;
    }
    span->bytes = (end > before_end ? end : before_end) - span->place;
}

/* Writes the patches of one turn in ascending sequence of their addresses; removals in descending
 * sequence. */
static sj_status write_turn(patching *work, turn which)
{
    changed_span span = {0};
    for (size_t k = 0; k < work->count; k++) {
        const size_t i = work->patches[0].is_removal ? work->count - 1 - k : k;
        const sj_text_patch *patch = &work->patches[i];
        if (patch->refused || turn_of(patch) != which) {
            continue;
        }
        work->report->changed++;
        memcpy(work->change->pages + work->change->places[i], patch->wanted, patch->bytes);
        if (which == TURN_CROSSING) {
            SJ_TRY(sj_tracee_write(work->target, patch->address, patch->wanted, patch->bytes));
            continue;
        }
        if (span.bytes != 0 && page_of(span.address) != page_of(patch->address)) {
            SJ_TRY(write_span(work, &span));
            span.bytes = 0;
        }
        widen(&span, patch, work->change->places[i]);
    }
    return write_span(work, &span);
}

static sj_status write_text(patching *work)
{
    for (int i = 0; i < TURNS && work->count != 0; i++) {
        SJ_TRY(write_turn(work, (turn)(work->patches[0].is_removal ? TURNS - 1 - i : i)));
    }
    return SJ_OK;
}

sj_status sj_text_change_apply(sj_tracee *target, sj_text_change *change,
                               sj_text_patch_report *report)
{
    patching work = {.target = target,
                     .change = change,
                     .patches = change->patches,
                     .count = change->count,
                     .report = report};
    SJ_TRY(read_pages(target, change));
    check_text(&work);
    return write_text(&work);
}
