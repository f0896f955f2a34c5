// The public front door: everything a program that uses weft needs.
#pragma once

#include "weft/base/context.h"
#include "weft/base/exceptions.h"
#include "weft/run/recording_scope.h"
#include "weft/tensor/jit.h"
#include "weft/tensor/tensor.h"
#include "weft/tensor/training.h"
