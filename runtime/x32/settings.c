#include "settings.h"

struct settings settings;
