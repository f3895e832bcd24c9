/*
 * forked.h - moved to base, where GPU memory asks the same question.
 */
#ifndef TSI_CONSUMER_FORKED_H
#define TSI_CONSUMER_FORKED_H

#include "base/forked.h"

#endif
