/* Links two static libraries in Rust, liblsmkv.a and that of second_library.rs, and calls both. */
#include <lsmkv.h>
#include <stddef.h>

int second_library_sum(int n);

int main(void) {
    lsmkv_db *db;
    if (lsmkv_open(":memory:", NULL, &db, NULL) != LSMKV_OK) return 1;
    if (lsmkv_set(db, "key", 3, "value", 5, NULL) != LSMKV_OK) return 2;
    if (second_library_sum(10) != 45) return 3;
    return lsmkv_close(db, NULL) == LSMKV_OK ? 0 : 4;
}
