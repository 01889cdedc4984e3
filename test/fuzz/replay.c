/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * A target without libFuzzer: each file of the corpus once, with any compiler. So what a fuzzer has
 * found stays found where there is none.
 *
 * Arguments: files, or directories of them. Exit status 0: all were run; 99: there was none.
 */

#include <dirent.h>
#include <sys/stat.h>

#include "fuzz.h"

static unsigned long files;

static void run_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(0 < size ? size : 1);

    if (NULL == file || NULL == bytes || size != fread(bytes, 1, size, file)) {
        fprintf(stderr, "replay: cannot read %s\n", path);
        exit(99);
    }
    fclose(file);
    (void) LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
    ++files;
}

static void run(const char *path)
{
    struct stat stat_of;
    struct dirent **names;
    char name[4096];
    int count;

    if (0 != stat(path, &stat_of)) {
        fprintf(stderr, "replay: there is no %s\n", path);
        exit(99);
    }
    if (!S_ISDIR(stat_of.st_mode)) {
        run_file(path, (size_t) stat_of.st_size);
        return;
    }
    count = scandir(path, &names, NULL, alphasort);
    for (int i = 0; i < count; ++i) {
        if ('.' != names[i]->d_name[0]) {
            snprintf(name, sizeof(name), "%s/%s", path, names[i]->d_name);
            run(name);
        }
        free(names[i]);
    }
    free(names);
}

int main(int argc, char **argv)
{
    (void) LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; ++i) {
        run(argv[i]);
    }
    printf("%lu inputs\n", files);
    return 0 < files ? 0 : 99;
}
