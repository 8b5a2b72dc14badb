/* Design notes
 *
 * Decimals, dates and durations are written from their fields, in the form of their invariant
 * texts. No code of the program runs. */
#include "agent/inproc/mono/internal.h"

#include <string.h>

enum {
    FIELD_STATIC = 0x10,
    HEADER_BYTES = 16, /* Size of an object's header. Offsets of fields include it. */
    DECIMAL_WORDS = 3,
    DECIMAL_DIGITS = 32,
    SCALE_SHIFT = 16,
    SCALE_MAX = 28,
    TICK_DIGITS = 7 /* Digits of a second that a tick shows. */
};

#define TICKS_PER_SECOND UINT64_C(10000000)
#define SECONDS_PER_DAY UINT64_C(86400)

sj_mono_field sj_mono_find_field(void *class, const char *name)
{
    void *iterator = NULL;
    for (void *field = sj_mono_runtime.class_fields(class, &iterator); field != NULL;
         field = sj_mono_runtime.class_fields(class, &iterator)) {
        const uint32_t offset = sj_mono_runtime.field_offset(field);
        if ((sj_mono_runtime.field_flags(field) & FIELD_STATIC) == 0 && offset >= HEADER_BYTES &&
            strcmp(sj_mono_runtime.field_name(field), name) == 0) {
            return (sj_mono_field){.type = sj_mono_runtime.field_type(field),
                                   .offset = offset - HEADER_BYTES};
        }
    }
    return (sj_mono_field){0};
}

/* Reads `bytes` bytes of a field. Returns false if the class has no such field. */
static bool read_field(void *class, const char *name, const void *place, void *target, size_t bytes)
{
    const sj_mono_field field = sj_mono_find_field(class, name);
    if (field.type != NULL) {
        memcpy(target, (const char *)place + field.offset, bytes);
    }
    return field.type != NULL;
}

/* Divides a number by 10. Its highest word is the first one. Returns the remainder. */
static uint32_t divide_by_ten(uint32_t words[DECIMAL_WORDS])
{
    uint64_t rest = 0;
    for (uint32_t i = 0; i < DECIMAL_WORDS; i++) {
        rest = rest << 32 | words[i];
        words[i] = (uint32_t)(rest / 10);
        rest %= 10;
    }
    return (uint32_t)rest;
}

static bool add_decimal(sj_value_text *text, void *class, const void *place)
{
    uint32_t words[DECIMAL_WORDS];
    uint32_t flags;
    char digits[DECIMAL_DIGITS];
    uint32_t at = sizeof(digits) - 1;
    uint32_t count = 0;
    if (!read_field(class, "hi", place, &words[0], sizeof(words[0])) ||
        !read_field(class, "mid", place, &words[1], sizeof(words[1])) ||
        !read_field(class, "lo", place, &words[2], sizeof(words[2])) ||
        !read_field(class, "flags", place, &flags, sizeof(flags))) {
        return false;
    }
    const uint32_t scale = flags >> SCALE_SHIFT & 0xff;
    if (scale > SCALE_MAX) {
        return false;
    }
    digits[at] = '\0';
    while (count <= scale || (words[0] | words[1] | words[2]) != 0) {
        if (count == scale && scale != 0) {
            digits[--at] = '.';
        }
        digits[--at] = (char)('0' + divide_by_ten(words));
        count++;
    }
    sj_value_text_add(text, flags >> 31 != 0 ? "-" : "");
    sj_value_text_add(text, digits + at);
    return true;
}

/* Appends a number with leading zeros. */
static void add_padded(sj_value_text *text, uint64_t number, uint32_t width)
{
    uint64_t power = 10;
    for (uint32_t i = 1; i < width; i++, power *= 10) {
        sj_value_text_add(text, number < power ? "0" : "");
    }
    sj_value_text_add_number(text, number, 10);
}

/* Appends the time of a day, such as 23:59:59. */
static void add_clock(sj_value_text *text, uint64_t seconds)
{
    add_padded(text, seconds / 3600, 2);
    sj_value_text_add(text, ":");
    add_padded(text, seconds / 60 % 60, 2);
    sj_value_text_add(text, ":");
    add_padded(text, seconds % 60, 2);
}

/* Appends the year, month and day of a number of days since 0001-01-01. */
static void add_day(sj_value_text *text, uint64_t days)
{
    enum { DAYS_400 = 146097, DAYS_100 = 36524, DAYS_4 = 1461, DAYS_1 = 365 };
    static const uint8_t lengths[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    uint64_t year = days / DAYS_400 * 400 + 1;
    days %= DAYS_400;
    const uint64_t centuries = days / DAYS_100 < 3 ? days / DAYS_100 : 3;
    days -= centuries * DAYS_100;
    const uint64_t fours = days / DAYS_4;
    days %= DAYS_4;
    const uint64_t ones = days / DAYS_1 < 3 ? days / DAYS_1 : 3;
    days -= ones * DAYS_1;
    year += centuries * 100 + fours * 4 + ones;
    const bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    uint32_t month = 0;
    uint32_t length = lengths[0];
    while (days >= length) {
        days -= length;
        month++;
        length = lengths[month % 12] + (month == 1 && is_leap ? 1U : 0U);
    }
    add_padded(text, year, 4);
    sj_value_text_add(text, "-");
    add_padded(text, month + 1, 2);
    sj_value_text_add(text, "-");
    add_padded(text, days + 1, 2);
}

/* Appends the ticks of a second without zeros at the end. */
static void add_ticks(sj_value_text *text, uint64_t ticks)
{
    uint32_t width = TICK_DIGITS;
    if (ticks == 0) {
        return;
    }
    while (ticks % 10 == 0) {
        ticks /= 10;
        width--;
    }
    sj_value_text_add(text, ".");
    add_padded(text, ticks, width);
}

static bool add_date(sj_value_text *text, void *class, const void *place)
{
    uint64_t ticks;
    if (!read_field(class, "_dateData", place, &ticks, sizeof(ticks)) &&
        !read_field(class, "dateData", place, &ticks, sizeof(ticks))) {
        return false;
    }
    ticks &= UINT64_MAX >> 2; /* The two upper bits are the DateTimeKind. */
    const uint64_t seconds = ticks / TICKS_PER_SECOND;
    add_day(text, seconds / SECONDS_PER_DAY);
    sj_value_text_add(text, " ");
    add_clock(text, seconds % SECONDS_PER_DAY);
    add_ticks(text, ticks % TICKS_PER_SECOND);
    return true;
}

static bool add_duration(sj_value_text *text, void *class, const void *place)
{
    int64_t span;
    if (!read_field(class, "_ticks", place, &span, sizeof(span))) {
        return false;
    }
    const uint64_t ticks = span < 0 ? 0 - (uint64_t)span : (uint64_t)span;
    const uint64_t seconds = ticks / TICKS_PER_SECOND;
    sj_value_text_add(text, span < 0 ? "-" : "");
    if (seconds >= SECONDS_PER_DAY) {
        sj_value_text_add_number(text, seconds / SECONDS_PER_DAY, 10);
        sj_value_text_add(text, ".");
    }
    add_clock(text, seconds % SECONDS_PER_DAY);
    if (ticks % TICKS_PER_SECOND != 0) {
        sj_value_text_add(text, ".");
        add_padded(text, ticks % TICKS_PER_SECOND, TICK_DIGITS);
    }
    return true;
}

bool sj_mono_describe_known(sj_value_text *text, void *class, const void *place)
{
    const char *space = sj_mono_runtime.class_namespace(class);
    const char *name = sj_mono_runtime.class_name(class);
    if (space == NULL || strcmp(space, "System") != 0) {
        return false;
    }
    return (strcmp(name, "Decimal") == 0 && add_decimal(text, class, place)) ||
           (strcmp(name, "DateTime") == 0 && add_date(text, class, place)) ||
           (strcmp(name, "TimeSpan") == 0 && add_duration(text, class, place));
}
