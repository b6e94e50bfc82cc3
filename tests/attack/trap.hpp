#pragma once

/// Queues a kernel on a stream (a cudaStream_t) that ends its GPU's context, as an error of the memory that cannot be
/// corrected does.
void queue_trap(void* stream);

/// Makes a GPU the calling thread's current one, whatever it says.
void make_current(int gpu);
