/* Answers as NVIDIA's management library does, from the file that FAKE_NVML names: a line per GPU. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, DRIVER_NOT_LOADED = 9 };

typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned long long total, free, used; } memory_info;

static int line_of(uintptr_t number, char *line, int size) {
    const char *path = getenv("FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) return 0;
    int found = 0;
    for (uintptr_t i = 0; fgets(line, size, file); i++)
        if (i == number) { found = 1; break; }
    fclose(file);
    return found;
}

static char line[64];

static int number_at(uintptr_t device, int place, long long *number) {
    if (!line_of(device - 1, line, sizeof line)) return 0;
    char *word = strtok(line, " \n");
    while (place--) word = strtok(NULL, " \n");
    *number = atoll(word);
    return *number >= 0;
}

int nvmlInit_v2(void) {
    return line_of(0, line, sizeof line) ? SUCCESS : DRIVER_NOT_LOADED;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, uintptr_t *device) {
    *device = index + 1;
    return line_of(index, line, sizeof line) ? SUCCESS : NOT_FOUND;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, uintptr_t *device) {
    unsigned index;
    return sscanf(uuid, "GPU-%u", &index) == 1 ? nvmlDeviceGetHandleByIndex_v2(index, device) : NOT_FOUND;
}

int nvmlDeviceGetUtilizationRates(uintptr_t device, utilization *rates) {
    long long use;
    if (!number_at(device, 0, &use)) return NOT_SUPPORTED;
    rates->gpu = use;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(uintptr_t device, memory_info *info) {
    long long used;
    if (!number_at(device, 1, &used)) return NOT_SUPPORTED;
    info->used = used;
    return SUCCESS;
}
