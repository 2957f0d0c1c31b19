/* Memory of an arena. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "fixture.h"

static char ended[8];

static void letter_add(void *argument)
{
    strcat(ended, argument);
}

static void test_an_arena_ends_what_it_owns_once(void)
{
    static char first[] = "a", second[] = "b";
    struct arena *owner = arena_new(0);
    arena_at_end(owner, letter_add, first);
    arena_at_end(owner, letter_add, second);
    CU_ASSERT_STRING_EQUAL(ended, "");
    arena_reset(owner);
    CU_ASSERT_STRING_EQUAL(ended, "ba");
    arena_at_end(owner, letter_add, first);
    arena_free(owner);
    CU_ASSERT_STRING_EQUAL(ended, "baa");
}

static void test_arena_gives_zeroed_aligned_memory(void)
{
    fresh();
    for (size_t size = 0; size < 200000; size = size * 2 + 1) {
        unsigned char *memory = arena_alloc(arena, size);
        CU_ASSERT_EQUAL((uintptr_t)memory % 16, 0);
        size_t sum = 0;
        for (size_t i = 0; i < size; i++)
            sum += memory[i];
        CU_ASSERT_EQUAL(sum, 0);
        memset(memory, 0xFF, size);
    }
    arena_reset(arena);
    unsigned char *again = arena_alloc(arena, 1000);
    CU_ASSERT_EQUAL(again[0] + again[999], 0);
    CU_ASSERT_EQUAL(arena_used_bytes(arena), 1000);
}

/* A text is printed directly into free space, or elsewhere if it does not fit. */
static void test_texts_are_whole_at_the_end_of_a_room(void)
{
    struct arena *small = arena_new(0);
    char *marks = memset(malloc(3000), 'm', 3000);
    marks[2999] = '\0';
    for (size_t i = 0; i < 200; i++) {
        const char *start = marks + (i * 37) % 2999;
        const char *printed = arena_printf(small, "%zu:%s", i, start);
        const char *copied = arena_text(small, start);
        char number[32];
        int length = snprintf(number, sizeof number, "%zu:", i);
        CU_ASSERT(strncmp(printed, number, (size_t)length) == 0 && strcmp(printed + length, start) == 0);
        CU_ASSERT_STRING_EQUAL(copied, start);
        const char *zeroed = arena_alloc(small, 100);
        for (size_t at = 0; at < 100; at++)
            CU_ASSERT(zeroed[at] == 0);
    }
    struct text text;
    text_init(&text, small);
    for (size_t length = 0; length < 700; length++) {
        text_clear(&text);
        text_add(&text, marks, length);
        text_printf(&text, "<%s>", "piece");
        CU_ASSERT_EQUAL(text.length, length + 7);
        CU_ASSERT_STRING_EQUAL(text.data + length, "<piece>");
        text_init(&text, small);
        text_printf(&text, "%s", marks + 2999 - length);
        CU_ASSERT_EQUAL(text.length, length);
        CU_ASSERT_EQUAL(strlen(text.data), length);
    }
    free(marks);
    arena_free(small);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"an arena ends what it owns once", test_an_arena_ends_what_it_owns_once},
        {"arena gives zeroed aligned memory", test_arena_gives_zeroed_aligned_memory},
        {"texts are whole at the end of a room", test_texts_are_whole_at_the_end_of_a_room},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("arena", tests);
}
