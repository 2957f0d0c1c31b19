/* The keystream, and the patterns that it draws. */
#include "engine/watermark/keystream.h"
#include "engine/watermark/lattice.h"
#include "watermark_maker.h"

/* Sanitizers and valgrind (TEST_FEW) are ten times slower, so the count is reduced. */
#if defined __SANITIZE_ADDRESS__ || defined TEST_FEW
enum { patterns_count = 300 };
#else
enum { patterns_count = 5000 };
#endif

/* RFC 8439, appendix A.1, test vector 1: 76 b8 e0 ad a0 f1 3d 90 ... */
static void keystream_is_chacha20(void)
{
    static const uint8_t zeros[32] = {0};
    struct keystream stream;

    keystream_init(&stream, zeros, 0);
    CU_ASSERT_EQUAL(keystream_word(&stream), 0xade0b876);
    CU_ASSERT_EQUAL(keystream_word(&stream), 0x903df1a0);
}

static void permutations_hold_everything_once(void)
{
    uint16_t order[1000];
    uint8_t seen[1000] = {0};
    struct keystream stream;
    unsigned in_place = 0;

    keystream_init(&stream, test_key, 5);
    keystream_permutation(&stream, order, 1000);
    for (unsigned i = 0; i < 1000; i++) {
        CU_ASSERT_FATAL(order[i] < 1000);
        seen[order[i]]++;
        in_place += order[i] == i;
    }
    for (unsigned i = 0; i < 1000; i++)
        CU_ASSERT_EQUAL(seen[i], 1);
    CU_ASSERT(in_place < 10);
}

/* Regression: the tones of this key had no free points, and the draw did not terminate. */
static void every_key_draws_a_pattern(void)
{
    static struct lattice lattice;
    uint64_t seed = 3;

    for (int i = 0; i < patterns_count; i++) {
        uint8_t key[WATERMARK_KEY_BYTES];

        for (unsigned byte = 0; byte < sizeof key; byte++)
            key[byte] = (uint8_t)(256 * random_uniform(&seed));
        for (unsigned form = LATTICE_OVERLAY; form <= LATTICE_UNDERLAY; form++) {
            lattice_init(&lattice, key, (enum lattice_form)form);
            CU_ASSERT(lattice.luma.count > (form == LATTICE_OVERLAY ? 1000 : 200));
            CU_ASSERT(lattice.chroma.count > (form == LATTICE_OVERLAY ? 400 : 200));
            for (unsigned tone = 0; tone < lattice_tones; tone++)
                CU_ASSERT(lattice.tones[tone].kx >= 2 && lattice.tones[tone].kx <= lattice_reach);
        }
    }
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"the keystream is ChaCha20", keystream_is_chacha20},
        {"permutations hold everything once", permutations_hold_everything_once},
        {"every key draws a pattern", every_key_draws_a_pattern},
        CU_TEST_INFO_NULL,
    };
    return runner_run("keystream", tests);
}
