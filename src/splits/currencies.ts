/**
 * When a partner with a connected account is imported, checks whether prices in its currency can be split. A check
 * after an acceptance would be too late.
 */
import { refuse } from '#errors/refusals';
import { minorDigits } from '#money';
import { PartnerRecord } from '#partners/file';
import { PROCESSOR } from '#processors/processors';

export function refuseUnsplittable(partners: readonly PartnerRecord[], file: string) {
  const problems = partners.flatMap(({ arrangement, currency }, index) =>
    arrangement === 'connected_account' && PROCESSOR.stepOf(currency) === undefined
      ? [
          {
            path: `${index}.currency`,
            reason:
              `cannot be ${currency} with a connected account: the processor does not accept payments in it. ` +
              'Use "arrangement": "invoicing", or another currency',
          },
        ]
      : [],
  );
  if (problems.length > 0) throw refuse('partners_invalid', { file, problems });
}

/**
 * The check warns about two kinds of partners. First, the processor may not accept the smallest unit of a partner's
 * currency, so that most prices cannot be split. Second, a sequential partner may not state its settlement currencies.
 */
export const remarksOnSplits = (partners: readonly PartnerRecord[]) =>
  partners.flatMap((partner) => [...remarkOnStep(partner), ...remarkOnSettlement(partner)]);

function remarkOnStep({ partner_id: id, arrangement, currency }: PartnerRecord) {
  const step = PROCESSOR.stepOf(currency);
  if (arrangement !== 'connected_account' || step === undefined) return [];
  const decimals = /[.](\d*[1-9])0*$/.exec(step)?.[1]?.length ?? 0;
  if (decimals >= (minorDigits(currency) as number)) return [];
  return [
    `Partner ${id}: the processor accepts ${currency} only in steps of ${step}, so a quote whose price or share is not a ` +
      `multiple of ${step} is accepted and cannot be split. Import rows whose amounts are multiples of it; for ` +
      'quotes that are priced here, use "arrangement": "invoicing".',
  ];
}

const remarkOnSettlement = ({ partner_id: id, split, settlement_currencies: stated }: PartnerRecord) =>
  split === 'sequential' && stated === undefined
    ? [
        `Partner ${id}: state "settlement_currencies", the currencies in which its platform is paid out. Without them, a ` +
          'share in another currency fails only after the customer is charged.',
      ]
    : [];
