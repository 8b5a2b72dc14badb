#include "collector-server/forward/forward_choice.h"

#include <stdio.h>
#include <string.h>

/* These tables are always sent: without them, other tables cannot be interpreted. */
static const char *const always[] = {"functions", "function_stats", "left_out", "sessions"};

static bool goes_always(const char *name)
{
    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); ++i) {
        if (strcmp(always[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_same(const char *name, const char *word, size_t length)
{
    return strlen(name) == length && memcmp(name, word, length) == 0;
}

static bool is_listed(const char *list, const char *name)
{
    for (const char *word = list; word != NULL;) {
        const size_t length = strcspn(word, ",");
        if (is_same(name, word, length)) {
            return true;
        }
        word = word[length] == ',' ? word + length + 1 : NULL;
    }
    return false;
}

static bool is_table(const char *word, size_t length)
{
    for (size_t i = 0; i < sj_forward_table_count; ++i) {
        if (is_same(sj_forward_tables[i].name, word, length)) {
            return true;
        }
    }
    return is_same(sj_forward_commands.name, word, length);
}

static sj_status refuse(const char *word, size_t length, sj_error *error)
{
    char names[SJ_FORWARD_LIST_BYTES] = "";
    for (size_t i = 0; i < sj_forward_table_count; ++i) {
        const size_t used = strlen(names);
        if (!goes_always(sj_forward_tables[i].name)) {
            snprintf(names + used, sizeof(names) - used, "%s, ", sj_forward_tables[i].name);
        }
    }
    return sj_fail(error, SJ_EINVAL,
                   "there is no table \"%.*s\" to forward: give some of %s%s, with commas between "
                   "them",
                   length < 60 ? (int)length : 60, word, names, sj_forward_commands.name);
}

static sj_status check_names(const char *list, sj_error *error)
{
    for (const char *word = list; word != NULL;) {
        const size_t length = strcspn(word, ",");
        if (!is_table(word, length)) {
            return refuse(word, length, error);
        }
        word = word[length] == ',' ? word + length + 1 : NULL;
    }
    return SJ_OK;
}

static void leave_out(sj_forward_choice *choice, const char *name)
{
    const size_t used = strlen(choice->left_out);
    snprintf(choice->left_out + used, sizeof(choice->left_out) - used, "%s\"%s\"",
             used > 1 ? "," : "", name);
}

sj_status sj_forward_choice_read(const char *list, sj_forward_choice *choice, sj_error *error)
{
    *choice = (sj_forward_choice){.left_out = "["};
    SJ_TRY(check_names(list, error));
    for (size_t i = 0; list != NULL && i < sj_forward_table_count; ++i) {
        const char *name = sj_forward_tables[i].name;
        choice->is_left_out[i] = !goes_always(name) && !is_listed(list, name);
        if (choice->is_left_out[i]) {
            leave_out(choice, name);
        }
    }
    choice->without_commands = list != NULL && !is_listed(list, sj_forward_commands.name);
    if (choice->without_commands) {
        leave_out(choice, sj_forward_commands.name);
    }
    const size_t used = strlen(choice->left_out);
    snprintf(choice->left_out + used, sizeof(choice->left_out) - used, "]");
    return SJ_OK;
}
