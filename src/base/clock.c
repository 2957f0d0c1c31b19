#include "base/clock.h"

#include <string.h>
#include <time.h>

static int64_t offset_ms;

/*
 * 9999-12-31T23:59:59.999Z: the last time with a four-digit year, which is also the latest that the database
 * accepts.
 */
static const int64_t latest_ms = 253402300799999;

static int64_t clock_read_ms(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t clock_now_ms(void)
{
    return clock_read_ms(CLOCK_REALTIME) + offset_ms;
}

int64_t clock_monotonic_ms(void)
{
    return clock_read_ms(CLOCK_MONOTONIC);
}

void clock_offset_set_s(int64_t offset_s)
{
    offset_ms = offset_s * 1000;
}

static int64_t floor_div(int64_t value, int64_t by)
{
    return value / by - (value % by < 0);
}

static void digits_write(char *at, unsigned value, int count)
{
    for (int i = count - 1; i >= 0; i--, value /= 10)
        at[i] = (char)('0' + value % 10);
}

void clock_iso(int64_t time_ms, char text[clock_iso_size])
{
    struct tm parts;
    time_t seconds = (time_t)floor_div(time_ms, 1000);
    gmtime_r(&seconds, &parts);
    int millisecond = (int)(time_ms - floor_div(time_ms, 1000) * 1000);
    /* Does not use printf, for speed: each response and its log line contain about six timestamps. */
    memcpy(text, "YYYY-MM-DDTHH:MM:SS.mmmZ", clock_iso_size);
    digits_write(text, (unsigned)(parts.tm_year + 1900), 4);
    digits_write(text + 5, (unsigned)(parts.tm_mon + 1), 2);
    digits_write(text + 8, (unsigned)parts.tm_mday, 2);
    digits_write(text + 11, (unsigned)parts.tm_hour, 2);
    digits_write(text + 14, (unsigned)parts.tm_min, 2);
    digits_write(text + 17, (unsigned)parts.tm_sec, 2);
    digits_write(text + 20, (unsigned)millisecond, 3);
}

const char *clock_iso_text(struct arena *arena, int64_t time_ms)
{
    char text[clock_iso_size];
    clock_iso(time_ms, text);
    return arena_text(arena, text);
}

void clock_day(int64_t time_ms, char text[11])
{
    char iso[clock_iso_size];
    clock_iso(time_ms, iso);
    memcpy(text, iso, 10);
    text[10] = '\0';
}

/* Reads exactly count digits and advances *text; returns -1 if there are fewer. */
static int digits_read(const char **text, int count)
{
    int value = 0;
    for (int i = 0; i < count; i++, (*text)++) {
        if (**text < '0' || **text > '9')
            return -1;
        value = value * 10 + (**text - '0');
    }
    return value;
}

static bool sign_read(const char **text, char sign)
{
    if (**text != sign)
        return false;
    (*text)++;
    return true;
}

/* Reads a date. Refuses days that do not exist, such as 31 February. */
static bool date_read(const char **text, int64_t *time_ms)
{
    struct tm parts = {0}, again;
    int year = digits_read(text, 4);
    if (year < 1970 || !sign_read(text, '-'))
        return false;
    int month = digits_read(text, 2);
    if (month < 1 || month > 12 || !sign_read(text, '-'))
        return false;
    int day = digits_read(text, 2);
    parts.tm_year = year - 1900;
    parts.tm_mon = month - 1;
    parts.tm_mday = day;
    if (day < 1 || day > 31)
        return false;
    time_t seconds = timegm(&parts);
    gmtime_r(&seconds, &again);
    *time_ms = (int64_t)seconds * 1000;
    return again.tm_mday == day;
}

static int fraction_read_ms(const char **text)
{
    int millisecond = 0, weight = 100;
    if (!sign_read(text, '.'))
        return 0;
    for (; **text >= '0' && **text <= '9'; (*text)++, weight /= 10)
        millisecond += weight * (**text - '0');
    return millisecond;
}

static bool zone_read(const char **text, int64_t *offset)
{
    *offset = 0;
    if (sign_read(text, 'Z') || sign_read(text, 'z'))
        return true;
    int sign = sign_read(text, '+') ? 1 : sign_read(text, '-') ? -1 : 0;
    int hour = sign != 0 ? digits_read(text, 2) : -1;
    if (hour < 0 || hour > 23 || !sign_read(text, ':'))
        return false;
    int minute = digits_read(text, 2);
    *offset = sign * (hour * 60 + minute) * 60000LL;
    return minute >= 0 && minute < 60;
}

bool clock_iso_read(const char *text, int64_t *time_ms)
{
    int64_t day_ms, offset;
    if (!date_read(&text, &day_ms) || !(sign_read(&text, 'T') || sign_read(&text, 't')))
        return false;
    int hour = digits_read(&text, 2);
    if (hour < 0 || hour > 23 || !sign_read(&text, ':'))
        return false;
    int minute = digits_read(&text, 2);
    if (minute < 0 || minute > 59 || !sign_read(&text, ':'))
        return false;
    int second = digits_read(&text, 2);
    if (second < 0 || second > 60)
        return false;
    int millisecond = fraction_read_ms(&text);
    if (!zone_read(&text, &offset) || *text != '\0')
        return false;
    *time_ms = day_ms + ((hour * 60 + minute) * 60 + second) * 1000LL + millisecond - offset;
    return *time_ms >= 0 && *time_ms <= latest_ms;
}

bool clock_day_read(const char *text, int64_t *time_ms)
{
    return date_read(&text, time_ms) && *text == '\0';
}
