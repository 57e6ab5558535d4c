// ONNX cells of recurrent layers and of single steps of them.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values recurrent(Lower& l);  // LSTM, GRU and RNN over a sequence
Values lstm_cell(Lower& l);
Values gru_cell(Lower& l);
Values rnn_cell(Lower& l);

}  // namespace modelport::ops::onnx
